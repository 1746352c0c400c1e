/** The work of a call is counted, not timed: it must not grow with the runs that are live. */
import SubagentService from '@deepseek-ai/dsh-subagent'
import { gate, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { boot, call } from './helpers.ts'

describe('a call', () => {
  test('asks for the state of its own run, and of none that is live beside it', async () => {
    const held = gate()
    const { ctx, parent } = await boot(
      {},
      {
        script: async () => {
          await held.opened
          return { text: 'done' }
        },
      },
    )
    const lists = vi.spyOn(SubagentService.prototype, 'runs')
    const finds = vi.spyOn(SubagentService.prototype, 'getRun')
    onTestFinished(() => void vi.restoreAllMocks())

    const callIds = ['call-1', 'call-2', 'call-3']
    const results = callIds.map((callId) => call({ ctx, parent }, undefined, { callId }))
    await waitFor('the calls to run', () => finds.mock.calls.length === 3)
    held.open()
    await Promise.all(results)

    expect(lists).not.toHaveBeenCalled()
    expect(finds).toHaveBeenCalledTimes(3)
  })

  test('looks no service up: all were resolved when the tool was loaded', async () => {
    const { ctx, parent } = await boot()
    const { run } = ctx.tools
    const signal = new AbortController().signal
    const input = { description: 'look around', prompt: 'go' }
    const heard: string[] = []
    ctx.on('internal/get', (_, name, __, next) => {
      heard.push(name)
      return next()
    })

    const { isError } = await run({
      agent: parent,
      callId: 'call-1',
      name: 'subagent',
      input,
      signal,
    })

    expect(isError).toBe(false)
    expect(heard).toEqual([])
  })
})
