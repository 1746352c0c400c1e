import type { Context } from '@deepseek-ai/cordis'
import type { FinishReason } from '@deepseek-ai/dsh-llm'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import type { Tool } from '@deepseek-ai/dsh-tools'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { createDriver } from '../src/index.ts'
import {
  createHeldTool,
  createHost,
  createStore,
  createTool,
  resultsOf,
  settle,
  storyOf,
  textOf,
} from './helpers.ts'

const calls = (...names: string[]): { name: string; callId: string }[] =>
  names.map((call) => {
    const [name = '', callId = ''] = call.split('#')
    return { name, callId }
  })

/** What JavaScript, unlike TypeScript, lets a tool return. */
const returning =
  (value: unknown): Tool['execute'] =>
  () =>
    Promise.resolve(value as string)

function fail(): never {
  throw new Error('not for reading')
}

/** A result with something besides its text. */
const resultWith = (extra: object): object => ({
  content: [{ type: 'text', text: 'a', ...extra }],
  isError: false,
})

describe('runCalls', () => {
  test('runs parallel calls at the same time and logs their results in call order', async () => {
    const { ctx, createAgent } = await createHost([{ calls: calls('p#a', 'p#b', 'p#c') }, 'done'])
    const { tool, started, release } = createHeldTool('p', { parallel: true })
    ctx.tools.register(tool)
    const agent = createAgent()

    const end = agent.send('go')
    await waitFor('all three run', () => started.length === 3)
    for (const callId of ['c', 'b', 'a']) {
      release(callId)
      await settle()
    }
    await end

    expect(storyOf(agent).slice(4, 10)).toEqual([
      'call a',
      'call b',
      'call c',
      'result a: a is done',
      'result b: b is done',
      'result c: c is done',
    ])
  })

  test('runs other calls one by one', async () => {
    const { ctx, createAgent } = await createHost([{ calls: calls('s#a', 's#b') }, 'done'])
    const { tool, started, release } = createHeldTool('s')
    ctx.tools.register(tool)
    const agent = createAgent()

    const end = agent.send('go')
    await waitFor('the first runs', () => started.length === 1)
    await settle()
    const before = [...started]
    release('a')
    await waitFor('the second runs', () => started.length === 2)
    release('b')
    await end

    expect(before).toEqual(['a'])
    expect(storyOf(agent).slice(4, 8)).toEqual([
      'call a',
      'result a: a is done',
      'call b',
      'result b: b is done',
    ])
  })

  test('runs parallel neighbours together, between the calls that stand alone', async () => {
    const { ctx, createAgent } = await createHost([
      { calls: calls('p#1', 'p#2', 's#3', 'p#4', 'gone#5', 'p#6', 'p#7') },
      'done',
    ])
    const order: string[] = []
    const execute: Tool['execute'] = async (_, { callId }) => {
      order.push(`+${callId}`)
      await settle()
      order.push(`-${callId}`)
      return callId
    }
    ctx.tools.register(createTool('p', execute, { parallel: true }))
    ctx.tools.register(createTool('s', execute))
    const agent = createAgent()

    await agent.send('go')

    expect(order.join(' ')).toBe('+1 +2 -1 -2 +3 -3 +4 -4 +6 +7 -6 -7')
    expect(resultsOf(agent)).toEqual([
      '1: 1',
      '2: 2',
      '3: 3',
      '4: 4',
      '5: UNKNOWN_TOOL',
      '6: 6',
      '7: 7',
    ])
  })

  test('keeps the results of the others when one of several fails', async () => {
    const { ctx, model, createAgent } = await createHost([
      { calls: calls('p#a', 'broken#b', 'p#c') },
      'done',
    ])
    ctx.tools.register(createTool('p', undefined, { parallel: true }))
    ctx.tools.register(
      createTool('broken', () => Promise.reject(new Error('disk full')), { parallel: true }),
    )
    const agent = createAgent()

    const end = await agent.send('go')

    expect(end).toEqual({ reason: 'completed' })
    expect(resultsOf(agent)).toEqual(['a: p is done', 'b: TOOL_FAILED', 'c: p is done'])
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
      'tool',
    ])
  })

  test('gives the model every failure as a result, and goes on', async () => {
    const { ctx, createAgent } = await createHost([
      {
        calls: [
          { name: 'nothing', callId: 'a' },
          { name: 'strict', callId: 'b', input: { count: 'three' } },
          { name: 'strict', callId: 'c', input: '{"count": ' },
          { name: 'strict', callId: 'd', input: { count: 3 } },
          { name: 'hidden', callId: 'e' },
        ],
      },
      'I see',
    ])
    ctx.tools.register({
      name: 'strict',
      description: 'counts',
      parameters: z.object({ count: z.number() }),
      execute: async ({ count }) => `${count}`,
    })
    ctx.tools.register(createTool('hidden'))
    const agent = createAgent({ toolScope: { allows: (name) => name !== 'hidden' } })

    const end = await agent.send('go')

    expect(end).toEqual({ reason: 'completed' })
    expect(resultsOf(agent)).toEqual([
      'a: UNKNOWN_TOOL',
      'b: INVALID_ARGUMENTS',
      'c: INVALID_ARGUMENTS',
      'd: 3',
      'e: TOOL_DENIED',
    ])
  })

  test.each<FinishReason>(['max-tokens', 'refusal', 'error', 'aborted'])(
    'executes no call of a message that finished with %s, and answers each',
    async (finish) => {
      const { ctx, model, createAgent } = await createHost([
        { calls: calls('work#a', 'work#b', 'gone#c'), finish },
      ])
      const execute = vi.fn<Tool['execute']>(async () => 'ran')
      ctx.tools.register(createTool('work', execute, { parallel: true }))
      const agent = createAgent()

      const end = await agent.send('go')

      expect(end).toEqual({ reason: finish })
      expect(execute).not.toHaveBeenCalled()
      expect(resultsOf(agent)).toEqual(['a: NOT_EXECUTED', 'b: NOT_EXECUTED', 'c: NOT_EXECUTED'])
      expect(model.requests).toHaveLength(1)
    },
  )

  test('gives a call its result also when the executor rejects', async () => {
    const { ctx } = await createHost([{ calls: calls('a#1', 'a#2') }, 'done'])
    const { llm, sessions, systemPrompt, logger, root } = ctx
    const tools = { table: ctx.tools.table, run: async () => fail() }
    const broken = { llm, sessions, systemPrompt, logger, root, tools } as unknown as Context
    const driver = createDriver(broken, { abortGraceMs: 1000, stopGraceMs: 1000 })
    const session = ctx.sessions.table.prepare({ cwd: '/' })
    const options = { model: 'scripted', maxSteps: 5 }
    const agent = driver.create({ session, options, toolScope: undefined })

    const end = await agent.send('go')

    expect(end).toEqual({ reason: 'completed' })
    expect(resultsOf(agent)).toEqual(['1: TOOL_FAILED', '2: TOOL_FAILED'])
  })

  test('gives a call its result also when what was thrown, or returned, cannot be read', async () => {
    const { ctx, createAgent } = await createHost([{ calls: calls('a#1', 'b#2') }, 'done'])
    const thrown = Object.defineProperty(new Error('x'), 'message', { get: fail })
    let reads = 0
    const read = (): object => (reads++ < 2 ? [] : fail())
    const returned = Object.defineProperty({ isError: false }, 'content', { get: read })
    ctx.tools.register(createTool('a', () => Promise.reject(thrown)))
    ctx.tools.register(createTool('b', returning(returned)))
    const agent = createAgent()

    const end = await agent.send('go')

    expect(end).toEqual({ reason: 'completed' })
    expect(resultsOf(agent)).toEqual(['1: TOOL_FAILED', '2: INVALID_RESULT'])
  })

  test('executes the calls of a message that finished with stop', async () => {
    const { ctx, createAgent } = await createHost([
      { calls: calls('work#a'), finish: 'stop' },
      'done',
    ])
    ctx.tools.register(createTool('work'))
    const agent = createAgent()

    await agent.send('go')

    expect(resultsOf(agent)).toEqual(['a: work is done'])
  })

  test('ends the turn with a result that says so, and runs nothing called after it', async () => {
    const { ctx, model, createAgent } = await createHost([
      { calls: calls('finish#a', 'work#b', 'work#c') },
    ])
    const execute = vi.fn<Tool['execute']>(async () => 'ran')
    ctx.tools.register(createTool('work', execute))
    ctx.tools.register(
      createTool('finish', async () => ({
        content: [{ type: 'text', text: 'handed in' }],
        isError: false,
        endsTurn: true,
      })),
    )
    const agent = createAgent()

    const end = await agent.send('go')

    expect(end).toEqual({ reason: 'completed' })
    expect(resultsOf(agent)).toEqual(['a: handed in', 'b: NOT_EXECUTED', 'c: NOT_EXECUTED'])
    expect(execute).not.toHaveBeenCalled()
    expect(model.requests).toHaveLength(1)
  })

  test.each<[string, unknown, RegExp]>([
    ['returns nothing', undefined, /gave no result/],
    ['returns a number for a text', { content: [{ type: 'text', text: 1 }] }, /gave no result/],
    ['returns what is no JSON', resultWith({ size: 1n }), /cannot be logged/],
    ['returns a date', resultWith({ at: new Date(0) }), /content\[0\]\.at" is Date/],
  ])('answers every call of a message when a tool %s', async (_, value, text) => {
    const { ctx, createAgent } = await createHost([
      { calls: calls('bad#a', 'good#b', 'good#c') },
      'done',
    ])
    ctx.tools.register(createTool('bad', returning(value), { parallel: true }))
    ctx.tools.register(createTool('good', undefined, { parallel: true }))
    const agent = createAgent()

    const end = await agent.send('go')

    expect(end).toEqual({ reason: 'completed' })
    expect(resultsOf(agent)).toEqual(['a: INVALID_RESULT', 'b: good is done', 'c: good is done'])
    const result = [...agent.session.events()].find(({ type }) => type === 'tool/result')
    expect(result?.data).toMatchObject({ isError: true })
    expect(textOf(result?.data as { content: [] })).toMatch(text)
  })

  test('passes every call through the listeners of tools/execute', async () => {
    const { ctx, createAgent } = await createHost([{ calls: calls('work#a') }, 'done'])
    ctx.tools.register(createTool('work'))
    ctx.on('tools/execute', async ({ callId }) => ({
      content: [{ type: 'text', text: `${callId} is vetoed` }],
      isError: true,
      code: 'VETOED',
    }))
    const agent = createAgent()

    await agent.send('go')

    expect(resultsOf(agent)).toEqual(['a: VETOED'])
  })
})

describe('runCalls with a store', () => {
  test('makes each call durable before it runs', async () => {
    const { ctx, createAgent } = await createHost([{ calls: calls('s#a', 'p#b', 'p#c') }, 'done'])
    const seen: string[] = []
    ctx.sessions.registerStore(
      createStore({
        append: (_, { type }) => void seen.push(type),
        flush: async () => void seen.push('flush'),
      }),
    )
    const execute: Tool['execute'] = async (_, { callId }) => {
      seen.push(`run ${callId}`)
      return 'ok'
    }
    ctx.tools.register(createTool('s', execute))
    ctx.tools.register(createTool('p', execute, { parallel: true }))

    await createAgent().send('go')

    expect(seen.slice(4, 16)).toEqual([
      'tool/call',
      'flush',
      'run a',
      'tool/result',
      'tool/call',
      'tool/call',
      'flush',
      'run b',
      'run c',
      'tool/result',
      'tool/result',
      'step/end',
    ])
    expect(seen.slice(-2)).toEqual(['turn/end', 'flush'])
  })

  test('runs no call that could not be stored, answers all of them and ends with an error', async () => {
    const { ctx, model, createAgent } = await createHost([
      { calls: calls('work#a', 'work#b', 'gone#c') },
      'fine',
    ])
    const flush = vi
      .fn<() => Promise<void>>()
      .mockRejectedValueOnce(new Error('disk full'))
      .mockResolvedValue()
    ctx.sessions.registerStore(createStore({ flush }))
    const execute = vi.fn<Tool['execute']>(async () => 'ran')
    ctx.tools.register(createTool('work', execute))
    const agent = createAgent()

    const end = await agent.send('go')

    expect(end).toEqual({
      reason: 'error',
      error: {
        code: 'NOT_EXECUTED',
        message: `session "${agent.id}" could not be stored: disk full`,
      },
    })
    expect(resultsOf(agent)).toEqual(['a: NOT_EXECUTED', 'b: NOT_EXECUTED', 'c: NOT_EXECUTED'])
    expect(execute).not.toHaveBeenCalled()
    expect(model.requests).toHaveLength(1)
    expect(await agent.send('again')).toEqual({ reason: 'completed' })
  })
})
