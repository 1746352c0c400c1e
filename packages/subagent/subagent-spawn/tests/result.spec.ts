import type { ScriptedReply } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import type { SubagentRunContext } from '@deepseek-ai/dsh-subagent'
import { createInProcessProvider, inProcessServices } from '../src/index.ts'
import { createBench, registerTool } from './helpers.ts'

const look = [{ name: 'look' }]

test('the usage of a result is that of the child, also without the care of the service', async () => {
  const { ctx, parent } = await createBench()
  const run = { runId: 'run', childId: 'child', depth: 1, report: () => {} }

  const bare = createInProcessProvider('bare', inProcessServices(ctx)).start(
    { prompt: 'go', parent },
    run as unknown as SubagentRunContext,
  )

  expect(await bare.result).toMatchObject({ usage: { inputTokens: 10, outputTokens: 5 } })
  await bare.dispose()
})

describe('the output of a child', () => {
  test.each<[string, (string | ScriptedReply)[], string[]]>([
    ['the last message', [{ text: 'first', calls: look }, 'last'], ['last']],
    [
      'the last one with text, when the last is only usage',
      [{ text: 'found it', calls: look }, { text: '' }],
      ['found it'],
    ],
    [
      'the last one with text, when the last is blank',
      [{ text: 'found it', calls: look }, { text: ' \n' }],
      ['found it'],
    ],
    [
      'the last one with text, when the last is only reasoning',
      [
        { text: 'found it', calls: look },
        { reasoning: 'hm', text: '' },
      ],
      ['found it'],
    ],
    ['nothing, when no message has text', [{ calls: look }, { text: '' }], []],
    ['without its reasoning', [{ reasoning: 'hm', text: 'yes' }], ['yes']],
  ])('is %s', async (_title, model, texts) => {
    const { ctx, delegate } = await createBench({ model })
    registerTool(ctx, 'look')

    const { output, stopReason } = await delegate()

    expect(output).toEqual(texts.map((text) => ({ type: 'text', text })))
    expect(stopReason).toBe('completed')
  })

  test('holds no call, only the texts around it', async () => {
    const { ctx, delegate } = await createBench({
      model: [{ text: 'look here', calls: look, finish: 'max-tokens' }],
    })
    registerTool(ctx, 'look')

    const { output } = await delegate()

    expect(output).toEqual([{ type: 'text', text: 'look here' }])
    expect(Object.isFrozen(output)).toBe(true)
  })
})
