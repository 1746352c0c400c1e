import { existsSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '@deepseek-ai/cordis'
import {
  bootYml,
  scriptedModel,
  temporaryFolder,
  testContext,
  waitFor,
} from '@deepseek-ai/dsh-testkit'
import { ToolService } from '@deepseek-ai/dsh-tools'
import { describe, expect, test } from 'vitest'
import * as toolBash from '../src/index.ts'
import { createExecutor, resultOf } from './helpers.ts'

const yml = `
- name: '@deepseek-ai/dsh-tool-bash'
- name: '@deepseek-ai/dsh-bash-local'
  config:
    timeoutMs: 10000
    maxTimeoutMs: 20000
    maxOutputBytes: 100
- name: '@deepseek-ai/dsh-agent-core'
`

/** An agent in a new folder, whose model calls `bash` once. */
async function createCaller(input: { command: string; timeoutMs?: number }) {
  const ctx = await bootYml(yml)
  const cwd = await temporaryFolder()
  ctx.llm.registerAdapter(scriptedModel([{ calls: [{ name: 'bash', input }] }, 'done']))
  const { agent } = ctx.agents.create({ cwd })
  return { ctx, cwd, agent }
}

/** What the model gets for one call of `bash`. */
async function callBash(input: { command: string; timeoutMs?: number }) {
  const { cwd, agent } = await createCaller(input)
  await agent.send('go')
  return { cwd, ...resultOf(agent.session.events()) }
}

describe('tool-bash', () => {
  test('runs a command in the folder of its agent', async () => {
    const { cwd, text, isError } = await callBash({ command: 'echo hi >file; pwd; cat file' })

    expect({ text, isError }).toEqual({ text: `${cwd}\nhi\n`, isError: false })
    expect(readFileSync(join(cwd, 'file'), 'utf8')).toBe('hi\n')
  })

  test('tells that a command printed nothing', async () => {
    expect(await callBash({ command: 'true' })).toMatchObject({
      text: '[exit code 0, no output]',
      isError: false,
    })
  })

  test('makes an error of a code other than 0, with output and code', async () => {
    expect(await callBash({ command: 'echo so far; exit 4' })).toMatchObject({
      text: 'so far\n[exit code 4]',
      isError: true,
      code: 'EXIT_NONZERO',
    })
  })

  test('tells a time limit that was reached, and what may help', async () => {
    const { text, code } = await callBash({ command: 'sleep 1000', timeoutMs: 50 })

    expect(code).toBe('TIMED_OUT')
    expect(text).toBe(
      '[not ended after 50 ms, so it was ended with its processes; a longer timeoutMs, up to 20000, may help]',
    )
  })

  test('tells a signal that killed the shell', async () => {
    expect(await callBash({ command: 'kill -9 $$' })).toMatchObject({
      text: '[the shell was killed by SIGKILL]',
      code: 'KILLED',
    })
  })

  test('shows head and tail of a long output, and where the rest is', async () => {
    const { text, isError } = await callBash({ command: 'seq 1000' })

    expect(isError).toBe(false)
    const [, path = ''] = /the whole output is in "(.*)"/.exec(text) ?? []
    expect(text).toMatch(/^1\n2\n[^]*\[\d+ bytes left out; the whole output .*\]\n[^]*\n1000\n$/)
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(1001)
  })

  test.each([
    [{ command: ' \n ' }, /command/],
    [{ command: 'true', timeoutMs: 20_001 }, /20000[^]*timeoutMs/],
    [{ command: 'true', timeoutMs: 1.5 }, /timeoutMs/],
  ])('refuses the arguments %j', async (input, message) => {
    expect(await callBash(input)).toMatchObject({
      code: 'INVALID_ARGUMENTS',
      text: expect.stringMatching(message),
    })
  })

  test('takes neither a folder nor variables nor a shell from the model', async () => {
    const { ctx, agent } = await createCaller({ command: 'true' })
    const input = {
      command: 'pwd; echo "[$WORD]"',
      cwd: '/',
      env: { WORD: 'x' },
      shell: '/bin/false',
    }
    const { signal } = new AbortController()

    const result = await ctx.tools.execute({ agent, callId: 'c', name: 'bash', input, signal })

    expect(result.content).toEqual([{ type: 'text', text: `${agent.cwd}\n[]\n` }])
    const [schema] = ctx.tools.schemas(agent)
    const properties = schema?.parameters['properties'] as object
    expect(Object.keys(properties).toSorted()).toEqual(['command', 'timeoutMs'])
  })

  test('names a workspace folder that is gone', async () => {
    const { agent, cwd } = await createCaller({ command: 'true' })
    await rm(cwd, { recursive: true })

    await agent.send('go')

    expect(resultOf(agent.session.events())).toMatchObject({
      code: 'CWD_MISSING',
      text: `tool "bash" failed: the working folder "${cwd}" does not exist`,
    })
  })

  test('tells its progress, and ends the command when its turn is cancelled', async () => {
    const { ctx, cwd, agent } = await createCaller({
      command: 'echo one; echo two; sleep 1000; touch late',
    })
    const lines: (string | undefined)[] = []
    ctx.on('tools/progress', ({ progress }) => void lines.push(progress.text))
    const turn = agent.send('go')
    await waitFor('the last line', () => lines.includes('two'))

    agent.cancel()

    expect(await turn).toMatchObject({ reason: 'aborted' })
    expect(resultOf(agent.session.events())).toMatchObject({
      code: 'ABORTED',
      text: 'one\ntwo\n[aborted before the command ended; its processes are gone]',
    })
    expect(existsSync(join(cwd, 'late'))).toBe(false)
  })

  test('comes and goes with its executor, also over twenty reloads', async () => {
    const ctx = testContext()
    await ctx.plugin(ToolService)
    const provide = { apply: (own: Context) => void own.provide('bash', createExecutor()) }
    const tool = ctx.plugin(toolBash, { toolName: 'shell' })
    expect(ctx.tools.table.names()).toEqual([])

    for (let count = 0; count < 20; count += 1) {
      const executor = await ctx.plugin(provide)
      await tool
      expect(ctx.tools.table.names()).toEqual(['shell'])
      await executor.dispose()
      expect(ctx.tools.table.names()).toEqual([])
    }
  })

  test('tells the model its arguments and their limits', async () => {
    const { ctx, agent } = await createCaller({ command: 'true' })

    const [schema] = ctx.tools.schemas(agent)

    expect(schema?.name).toBe('bash')
    expect(schema?.parameters).toMatchObject({
      properties: {
        command: { type: 'string' },
        timeoutMs: {
          maximum: 20_000,
          description: expect.stringContaining('default 10000, at most 20000'),
        },
      },
      required: ['command'],
    })
  })
})
