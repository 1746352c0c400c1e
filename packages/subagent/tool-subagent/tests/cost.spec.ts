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
})
