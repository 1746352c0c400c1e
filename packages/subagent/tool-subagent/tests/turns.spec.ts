import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { ModelRequest } from '@deepseek-ai/dsh-llm'
import type { RunLimits } from '@deepseek-ai/dsh-subagent'
import { createMockProvider, type MockScript } from '@deepseek-ai/dsh-subagent-mock'
import { bootYml, gate, scriptedModel, type ScriptedReply, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { core, entry, textOf } from './helpers.ts'

describe('five calls in one message', () => {
  const prompts = ['a', 'b', 'c', 'd', 'e']
  const replies = [delegation(...prompts), 'done']

  test('run at the same time, and their results come in call order', async () => {
    const gates = prompts.map(() => gate())
    const { parent, mock } = await bootParent(replies, async ({ index }) => {
      await gates[index]?.opened
      return `answer ${prompts[index]}`
    })

    const turn = parent.send('go')
    await waitFor('five children', () => mock.alive.size === 5)
    for (const held of gates.toReversed()) held.open()

    expect(await turn).toEqual({ reason: 'completed' })
    const results = resultsOf(parent)
    expect(results.map(({ callId }) => callId)).toEqual([0, 1, 2, 3, 4].map((n) => `call-${n}`))
    for (const [index, { text }] of results.entries()) {
      expect(text).toContain(`\nanswer ${prompts[index]}\n`)
    }
  })

  test('keep the results of four when one child dies', async () => {
    const { ctx, parent } = await bootParent(replies, ({ index }) => {
      if (index === 2) throw new Error('dead')
      return `answer ${index}`
    })

    await parent.send('go')

    const results = resultsOf(parent)
    expect(results.map(({ isError }) => isError)).toEqual([false, false, true, false, false])
    expect(results[2]?.text).toContain('dead')
    expect(ctx.subagents.runs()).toEqual([])
  })

  test('keep the results of four when one child is too slow', async () => {
    const { parent } = await bootParent(
      replies,
      ({ index }) => (index === 2 ? new Promise(() => {}) : `answer ${index}`),
      {},
      { timeoutMs: 100 },
    )

    expect(await parent.send('go')).toEqual({ reason: 'completed' })

    const results = resultsOf(parent)
    expect(results.map(({ isError }) => isError)).toEqual([false, false, true, false, false])
    expect(results[2]?.text).toContain('timeout')
    expect(results[4]?.text).toContain('\nanswer 4\n')
  })

  test('are all cancelled with the turn, and the parent goes on afterwards', async () => {
    const { ctx, parent, mock, model } = await bootParent(
      [...replies, 'later'],
      () => new Promise(() => {}),
    )
    const turn = parent.send('go')
    await waitFor('five children', () => mock.alive.size === 5)

    parent.cancel()

    expect((await turn).reason).toBe('aborted')
    expect(resultsOf(parent).map(({ isError }) => isError)).toEqual(prompts.map(() => true))
    await waitFor('five disposals', () => mock.disposed.length === 5)
    expect(ctx.subagents.runs()).toEqual([])
    expect(model.requests).toHaveLength(1)
    expect(await parent.send('again')).toEqual({ reason: 'completed' })
  })

  test('beyond maxPerTurn are refused, with the advice to stop delegating', async () => {
    const { parent } = await bootParent(replies, () => 'ok', { maxPerTurn: 3 })

    await parent.send('go')

    const results = resultsOf(parent)
    expect(results.map(({ isError }) => isError)).toEqual([false, false, false, true, true])
    expect(results[4]?.text).toContain('do not call this tool again in this turn')
  })
})

describe('over spawned children', () => {
  test('the log of the parent holds the call and its result alone', async () => {
    const { ctx, parent } = await bootSpawn((request, index) => {
      if (promptOf(request) === 'the task') return 'the answer of the child'
      return index === 0 ? delegation('the task') : 'the end'
    })

    expect(await parent.send('go')).toEqual({ reason: 'completed' })

    expect([...parent.session.events()].map(({ type }) => type)).toEqual([
      'turn/start',
      'user/message',
      'step/start',
      'assistant/message',
      'tool/call',
      'tool/result',
      'step/end',
      'step/start',
      'assistant/message',
      'step/end',
      'turn/end',
    ])
    expect(resultsOf(parent)[0]?.text).toContain('\nthe answer of the child\n')
    expect(ctx.agents.list()).toEqual([parent])
  })

  test('a model that always delegates stops at the default depth and is told to work itself', async () => {
    const depths: number[] = []
    // Without a limit the test fails at the tenth child, instead of never ending.
    const { ctx, parent } = await bootSpawn((_, index) =>
      index === 0 && depths.length < 10 ? delegation('delegate further') : 'I did it myself',
    )
    const refusals: string[] = []
    ctx.on('agent/created', ({ agent }) => {
      depths.push(agent.session.header.delegationDepth)
    })
    ctx.on('session/event', ({ event }) => {
      if (event.type === 'tool/result' && event.data.isError) refusals.push(textOf(event.data))
    })

    expect(await parent.send('go')).toEqual({ reason: 'completed' })

    expect(depths).toEqual([1, 2, 3])
    expect(refusals).toHaveLength(1)
    expect(refusals[0]).toContain('Do the work yourself')
  })
})

async function bootParent(
  replies: readonly (string | ScriptedReply)[],
  script: MockScript,
  limits: Partial<RunLimits> = {},
  config: Readonly<Record<string, unknown>> = {},
) {
  const tool = entry('tool-subagent', { provider: 'mock', ...config })
  const ctx = await bootYml(entry('agent-core') + entry('subagent', limits) + tool)
  const model = scriptedModel(replies)
  ctx.llm.registerAdapter(model)
  const mock = createMockProvider({ script })
  ctx.subagents.registerProvider(mock)
  return { ctx, parent: ctx.agents.create({ cwd: '/' }).agent, mock, model }
}

async function bootSpawn(
  answer: (request: ModelRequest, index: number) => string | ScriptedReply,
): Promise<{ ctx: Context; parent: Agent }> {
  const ctx = await bootYml(
    entry('tool-subagent', { provider: 'spawn' }) + entry('subagent-spawn') + core,
  )
  ctx.llm.registerAdapter(scriptedModel(answer))
  return { ctx, parent: ctx.agents.create({ cwd: '/' }).agent }
}

/** A message that calls the tool once for each prompt. */
function delegation(...prompts: string[]): ScriptedReply {
  return {
    calls: prompts.map((prompt, index) => ({
      name: 'subagent',
      callId: `call-${index}`,
      input: { description: `task ${index}`, prompt },
    })),
  }
}

function resultsOf(agent: Agent): { callId: string; isError: boolean; text: string }[] {
  return [...agent.session.events()].flatMap((event) => {
    if (event.type !== 'tool/result') return []
    const { callId, isError } = event.data
    return [{ callId, isError, text: textOf(event.data) }]
  })
}

function promptOf({ messages }: ModelRequest): string {
  return textOf({ content: messages[0]?.content as [] })
}
