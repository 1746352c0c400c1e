import type { ToolAgent } from '@deepseek-ai/dsh-tools'
import { describe, expect, test } from 'vitest'
import { bashTool } from '../src/tool.ts'
import { createExecutor, createResult } from './helpers.ts'

/** Runs the tool over an executor that gives `result` after it has said `pieces`. */
async function execute(result = createResult(), pieces: readonly string[] = []) {
  const lines: (string | undefined)[] = []
  const executor = createExecutor(result, pieces)
  const signal = new AbortController().signal
  const update = ({ text }: { text?: string }): void => void lines.push(text)
  const exec = {
    agent: { id: 's', cwd: '/work' } as unknown as ToolAgent,
    callId: 'c',
    signal,
    update,
  }
  const toolResult = await bashTool('bash', executor).execute({ command: 'x' }, exec)
  return { toolResult, lines, requests: executor.requests, signal }
}

describe('bashTool', () => {
  test('asks in the name of its call for the command, in the folder of the agent and under the signal of the call', async () => {
    const { requests, signal } = await execute()

    expect(requests).toEqual([
      {
        command: 'x',
        cwd: '/work',
        timeoutMs: 1000,
        signal,
        onOutput: expect.any(Function),
        caller: { sessionId: 's', callId: 'c' },
      },
    ])
  })

  test('tells the last line of each piece of output, shortened between characters', async () => {
    const { lines } = await execute(createResult(), ['a\nb\n', '\n', '10%\r20%', '😀'.repeat(101)])

    expect(lines).toEqual(['b', '20%', '😀'.repeat(100)])
  })

  test('advises to do less when the longest time limit was too short', async () => {
    const { toolResult } = await execute(createResult({ isTimedOut: true, output: 'out\n' }))

    expect(toolResult).toMatchObject({
      code: 'TIMED_OUT',
      content: [
        { text: expect.stringMatching(/^out\n\[not ended after 1000 ms.*do less in one call\]$/) },
      ],
    })
  })

  test('tells a shell whose end is not known', async () => {
    const { toolResult } = await execute(createResult({ exitCode: undefined }))

    expect(toolResult).toMatchObject({ code: 'KILLED', isError: true })
  })
})
