import type { Agent } from '@deepseek-ai/dsh-agent'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { SubagentRun } from '../src/index.ts'
import {
  bootSeam,
  createParent,
  createStub,
  promptOf,
  registerDelegate,
  type SeamOptions,
  type StubOptions,
  type StubProvider,
  textOf,
} from './helpers.ts'

interface Bench {
  readonly ctx: Awaited<ReturnType<typeof bootSeam>>
  readonly parent: Agent
  readonly stub: StubProvider
  readonly start: (prompt: string, parent?: Agent) => SubagentRun
  /** What the provider was asked, in order. */
  readonly prompts: () => string[]
}

async function createBench(
  limits: SeamOptions['limits'],
  stubOptions: StubOptions = {},
): Promise<Bench> {
  const ctx = await bootSeam({ limits })
  const stub = createStub(stubOptions)
  ctx.subagents.registerProvider(stub)
  const parent = createParent(ctx)
  return {
    ctx,
    parent,
    stub,
    start: (prompt, by = parent) => ctx.subagents.start('stub', { prompt, parent: by }),
    prompts: () => stub.runs.map(({ request }) => request.prompt),
  }
}

describe('maxConcurrent', () => {
  test('lets extra runs wait and starts them in order as others end', async () => {
    const { stub, start, prompts, ctx } = await createBench({ maxConcurrent: 2 })

    const runs = ['a', 'b', 'c', 'd'].map((prompt) => start(prompt))
    const listed = ctx.subagents.runs().map(({ id }) => id)
    const atFirst = prompts()
    stub.runs[1]?.settle({})
    await runs[1]?.result
    const afterOne = prompts()
    stub.runs[0]?.settle({})
    stub.runs[2]?.settle({})
    await waitFor('the last one starts', () => stub.runs.length === 4)
    stub.runs[3]?.settle({})
    const results = await Promise.all(runs.map(async ({ result }) => result))

    expect(listed).toEqual(runs.map(({ id }) => id))
    expect(atFirst).toEqual(['a', 'b'])
    expect(afterOne).toEqual(['a', 'b', 'c'])
    expect(prompts()).toEqual(['a', 'b', 'c', 'd'])
    expect(results.map(({ stopReason }) => stopReason)).toEqual(Array(4).fill('completed'))
    expect(ctx.subagents.runs()).toEqual([])
    await Promise.all(runs.map((run) => run.dispose()))
  })

  test('a run frees its slot when it is over, before anybody disposes it', async () => {
    const { stub, start, prompts } = await createBench({ maxConcurrent: 1 })
    const first = start('first')
    const second = start('second')

    stub.last().settle({})
    await first.result

    expect(prompts()).toEqual(['first', 'second'])
    await Promise.all([first.dispose(), second.dispose()])
  })

  test.each(['cancel', 'dispose', 'signal', 'parent'])(
    'a waiting run that is ended by %s never starts, and the next one does',
    async (means) => {
      const { ctx, stub, start, prompts } = await createBench({ maxConcurrent: 1 })
      const heard: string[] = []
      ctx.on('subagent/start', ({ id }) => heard.push(id))
      ctx.on('subagent/end', ({ id }) => heard.push(id))
      const { agent: other, dispose } = ctx.agents.create({ cwd: '/' })
      const controller = new AbortController()
      const first = start('first')
      const waiting = ctx.subagents.start('stub', {
        prompt: 'waiting',
        parent: other,
        signal: controller.signal,
      })
      const last = start('last')

      if (means === 'cancel') waiting.cancel('no need')
      else if (means === 'dispose') await waiting.dispose()
      else if (means === 'signal') controller.abort('no need')
      else await dispose()
      const result = await waiting.result
      stub.last().settle({})
      await first.result

      expect(result).toMatchObject({ output: [], stopReason: 'aborted' })
      expect(prompts()).toEqual(['first', 'last'])
      expect(heard).toEqual([first.id, first.id, last.id])
      await Promise.all([waiting, last].map((run) => run.dispose()))
      expect(ctx.subagents.runs()).toEqual([])
    },
  )

  test('a start that fails throws, leaves nothing and gives its slot back', async () => {
    const { ctx, start, prompts } = await createBench(
      { maxConcurrent: 1 },
      { onStart: failIfDoomed },
    )
    const heard: string[] = []
    ctx.on('subagent/start', ({ id }) => heard.push(id))
    ctx.on('subagent/end', ({ id }) => heard.push(id))

    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect(() => start('doomed')).toThrow('no engine')
    }
    const listed = ctx.subagents.runs()
    const run = start('sound')

    expect(listed).toEqual([])
    expect(prompts()).toEqual(['sound'])
    expect(heard).toEqual([run.id])
    await run.dispose()
  })

  test('a provider that gives no run has failed to start', async () => {
    const ctx = await bootSeam({ limits: { maxConcurrent: 1 } })
    const parent = createParent(ctx)
    const stub = createStub()
    ctx.subagents.registerProvider({ ...stub, name: 'hollow', start: () => undefined as never })
    ctx.subagents.registerProvider(stub)

    expect(() => ctx.subagents.start('hollow', { prompt: 'go', parent })).toThrow(TypeError)

    expect(ctx.subagents.runs()).toEqual([])
    const run = ctx.subagents.start('stub', { prompt: 'go', parent })
    expect(stub.runs).toHaveLength(1)
    await run.dispose()
  })

  test('a waiting run whose start fails ends as an error, and the next one starts', async () => {
    const { start, stub, prompts, ctx } = await createBench(
      { maxConcurrent: 1 },
      { onStart: failIfDoomed },
    )
    const heard: string[] = []
    ctx.on('subagent/end', ({ id }) => heard.push(id))
    const [first, doomed, last] = [start('first'), start('doomed'), start('last')]

    stub.last().settle({})
    const result = await doomed.result

    expect(result).toEqual({ output: [], stopReason: 'error', diagnostic: 'no engine' })
    expect(prompts()).toEqual(['first', 'last'])
    expect(heard).toEqual([first.id])
    await Promise.all([first, doomed, last].map((run) => run.dispose()))
  })

  test('thousands of waiting runs that all fail to start end, one after another', async () => {
    const { start, stub, ctx } = await createBench({ maxConcurrent: 1 }, { onStart: failIfDoomed })
    const first = start('first')
    const doomed = Array.from({ length: 5000 }, () => start('doomed'))

    stub.last().settle({})
    const results = await Promise.all(doomed.map(async ({ result }) => result))

    expect(new Set(results.map(({ diagnostic }) => diagnostic))).toEqual(new Set(['no engine']))
    expect(ctx.subagents.runs()).toEqual([])
    await Promise.all([first, ...doomed].map((run) => run.dispose()))
  })
})

function failIfDoomed({ prompt }: { readonly prompt: string }): void {
  if (prompt === 'doomed') throw new Error('no engine')
}

describe('maxConcurrentPerParent', () => {
  test('holds back the children of one parent and nobody else', async () => {
    const { ctx, stub, start, prompts } = await createBench({ maxConcurrentPerParent: 1 })
    const other = createParent(ctx)

    const runs = [start('a'), start('b'), start('x', other), start('y', other)]
    const atFirst = prompts()
    stub.runs[1]?.settle({})
    await runs[2]?.result

    expect(atFirst).toEqual(['a', 'x'])
    expect(prompts()).toEqual(['a', 'x', 'y'])
    await Promise.all(runs.map((run) => run.dispose()))
    expect(ctx.subagents.runs()).toEqual([])
  })

  test('a run that waits for its siblings does not block the queue behind it', async () => {
    const { ctx, stub, start, prompts } = await createBench({
      maxConcurrent: 2,
      maxConcurrentPerParent: 1,
    })
    const [second, third] = [createParent(ctx), createParent(ctx)]

    const runs = [start('a'), start('b'), start('x', second), start('y', third)]
    const atFirst = prompts()
    stub.runs[1]?.settle({})
    await runs[2]?.result

    expect(atFirst).toEqual(['a', 'x'])
    expect(prompts()).toEqual(['a', 'x', 'y'])
    await Promise.all(runs.map((run) => run.dispose()))
  })
})

describe('maxPerTurn', () => {
  test('refuses further children in a turn with advice, and counts anew in the next', async () => {
    const refusals: unknown[] = []
    const ctx = await bootSeam({ limits: { maxPerTurn: 2 }, model: callThenAnswer })
    const stub = createStub({ onStart: failIfDoomed })
    ctx.subagents.registerProvider(stub)
    const parent = createParent(ctx)
    const start = (prompt: string, signal?: AbortSignal): unknown => {
      try {
        return ctx.subagents.start('stub', { prompt, parent, signal }).dispose()
      } catch (error) {
        return refusals.push(error)
      }
    }
    registerProbe(ctx, () => {
      start('doomed')
      start('aborted', AbortSignal.abort())
      for (const prompt of ['a', 'b', 'c']) start(prompt)
    })

    await parent.send('one')
    const inFirst = stub.runs.map(({ request }) => request.prompt)
    await parent.send('two')

    expect(inFirst).toEqual(['a', 'b'])
    expect(stub.runs.map(({ request }) => request.prompt)).toEqual(['a', 'b', 'a', 'b'])
    expect(refusals[1]).toMatchObject({
      code: 'TOO_MANY_RUNS',
      message:
        '2 children were started in this turn, which is maxPerTurn: do the rest without delegating, or in fewer, larger tasks',
    })
  })

  test('counts nothing that is started while the parent is idle', async () => {
    const { stub, start } = await createBench({ maxPerTurn: 1 })

    const runs = ['a', 'b', 'c'].map((prompt) => start(prompt))

    expect(stub.runs).toHaveLength(3)
    await Promise.all(runs.map((run) => run.dispose()))
  })
})

/** A model that calls the tool `probe` in each turn and then answers. */
const callThenAnswer: SeamOptions['model'] = ({ messages }) =>
  messages.at(-1)?.role === 'user' ? { calls: [{ name: 'probe' }] } : 'done'

function registerProbe(ctx: Bench['ctx'], probe: (signal: AbortSignal) => unknown): void {
  ctx.tools.register({
    name: 'probe',
    description: 'lets a test act inside a tool call',
    parameters: z.object({}),
    execute: async (_args, { signal }) => {
      await probe(signal)
      return 'probed'
    },
  })
}

/** Each agent delegates to the next in the chain until the last one answers. */
const chain: SeamOptions['model'] = (request) => {
  const left = Number(promptOf(request))
  const isAnswered = request.messages.at(-1)?.role === 'tool'
  if (left === 0 || isAnswered) return `end of ${left}`
  return { calls: [{ name: 'delegate', input: { prompt: `${left - 1}` } }] }
}

describe('a slot', () => {
  test('is handed on by a run that waits for its child: nesting never deadlocks', async () => {
    const limits = { maxConcurrent: 1, maxConcurrentPerParent: 1 }
    const ctx = await bootSeam({ limits, model: chain, hasSpawn: true })
    registerDelegate(ctx)
    const parent = createParent(ctx)

    const runs = [3, 2, 0].map((depth) =>
      ctx.subagents.start('spawn', { prompt: `${depth}`, parent }),
    )
    const results = await Promise.all(runs.map(async ({ result }) => result))

    expect(results.map(textOf)).toEqual(['end of 3', 'end of 2', 'end of 0'])
    await Promise.all(runs.map((run) => run.dispose()))
    expect(ctx.subagents.runs()).toEqual([])
    expect(ctx.agents.list()).toEqual([parent])
  })

  test('is shared by the children that a run waits for', async () => {
    const started: string[] = []
    let atOnce = 0
    let most = 0
    const ctx = await bootSeam({
      limits: { maxConcurrent: 1 },
      hasSpawn: true,
      model: (request) => {
        if (promptOf(request) !== 'lead') return 'leaf'
        if (request.messages.at(-1)?.role === 'tool') return 'led'
        const calls = ['a', 'b', 'c'].map((prompt) => ({ name: 'delegate', input: { prompt } }))
        return { calls: calls.map((call, index) => ({ ...call, callId: `${index}` })) }
      },
    })
    registerDelegate(ctx)
    const parent = createParent(ctx)
    ctx.on('subagent/start', ({ id }) => {
      started.push(id)
      if (started.length > 1) most = Math.max(most, ++atOnce)
    })
    ctx.on('subagent/end', () => (atOnce -= 1))

    const run = ctx.subagents.start('spawn', { prompt: 'lead', parent })

    expect(textOf(await run.result)).toBe('led')
    expect(started).toHaveLength(4)
    expect(most).toBe(1)
    await run.dispose()
  })

  test('comes back when a child was asked for with an aborted signal', async () => {
    const { stub, start, ctx, prompts } = await createBench({ maxConcurrent: 1 })
    const first = start('first')
    const child = ctx.agents.create({ id: first.id, cwd: '/', delegationDepth: 1 }).agent
    const signal = AbortSignal.abort()

    await ctx.subagents.start('stub', { prompt: 'never', parent: child, signal }).dispose()
    stub.last().settle({})
    await first.result
    const second = start('second')
    const third = start('third')

    expect(prompts()).toEqual(['first', 'second'])
    await Promise.all([first, second, third].map((run) => run.dispose()))
  })

  test('comes back when a waiting child of a run is cancelled', async () => {
    const { stub, start, ctx, prompts } = await createBench({ maxConcurrent: 1 })
    const first = start('first')
    const child = ctx.agents.create({ id: first.id, cwd: '/', delegationDepth: 1 }).agent
    const nested = ['a', 'b'].map((prompt) => start(prompt, child))
    const second = start('second')

    nested[1]?.cancel()
    nested[0]?.cancel()
    await nested[0]?.result
    const afterCancel = prompts()
    stub.runs[0]?.settle({})
    await first.result

    expect(afterCancel).toEqual(['first', 'a'])
    expect(prompts()).toEqual(['first', 'a', 'second'])
    await Promise.all([first, second, ...nested].map((run) => run.dispose()))
  })

  test('comes back when a run ends before the children that it started', async () => {
    const { stub, start, ctx, prompts } = await createBench({ maxConcurrent: 1 })
    const first = start('first')
    const child = ctx.agents.create({ id: first.id, cwd: '/', delegationDepth: 1 }).agent
    const nested = start('nested', child)
    const waiting = start('waiting')

    stub.runs[0]?.settle({})
    await first.result
    const whileNested = prompts()
    stub.runs[1]?.settle({})
    await nested.result

    expect(whileNested).toEqual(['first', 'nested'])
    expect(prompts()).toEqual(['first', 'nested', 'waiting'])
    const last = start('last')
    expect(prompts()).toHaveLength(3)
    await Promise.all([first, nested, waiting, last].map((run) => run.dispose()))
  })
})
