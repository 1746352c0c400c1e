import { gate, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import type { SubagentRunEnd, SubagentRunInfo, SubagentUpdate } from '../src/index.ts'
import {
  bootSeam,
  createParent,
  createStub,
  promptOf,
  registerDelegate,
  type SeamOptions,
  textOutput,
} from './helpers.ts'

describe('subagent/start and subagent/end', () => {
  test('tell of the run, its child and its parent', async () => {
    const ctx = await bootSeam()
    const stub = createStub()
    ctx.subagents.registerProvider(stub)
    const parent = createParent(ctx)
    const heard: [string, SubagentRunInfo | SubagentRunEnd][] = []
    ctx.on('subagent/start', (payload) => heard.push(['start', payload]))
    ctx.on('subagent/end', (payload) => heard.push(['end', payload]))

    const run = ctx.subagents.start('stub', { prompt: 'go', parent, label: 'scout' })
    const usage = { inputTokens: 3, outputTokens: 2 }
    stub.last().settle({ output: textOutput('found'), stopReason: 'max-tokens', usage })
    await run.result

    const { runId } = stub.last().context
    const info = { runId, provider: 'stub', id: run.id, parent, label: 'scout' }
    expect(heard).toEqual([
      ['start', info],
      [
        'end',
        { ...info, stopReason: 'max-tokens', usage, lastAssistantMessage: textOutput('found') },
      ],
    ])
    const [, end] = heard[1] as [string, SubagentRunEnd]
    expect(Object.isFrozen(end.lastAssistantMessage)).toBe(true)
    await run.dispose()
  })

  test('leave out what there is not', async () => {
    const ctx = await bootSeam()
    const stub = createStub()
    ctx.subagents.registerProvider(stub)
    const keys: string[][] = []
    ctx.on('subagent/start', (payload) => keys.push(Object.keys(payload)))
    ctx.on('subagent/end', (payload) => keys.push(Object.keys(payload)))

    const run = ctx.subagents.start('stub', { prompt: 'go', parent: createParent(ctx) })
    stub.last().settle({})
    await run.result

    const always = ['runId', 'provider', 'id', 'parent']
    expect(keys).toEqual([always, [...always, 'stopReason']])
    await run.dispose()
  })

  test('have a run id of their own for each run', async () => {
    const ctx = await bootSeam()
    const stub = createStub()
    ctx.subagents.registerProvider(stub)
    const parent = createParent(ctx)
    const ids = new Set<string>()
    ctx.on('subagent/start', ({ runId }) => ids.add(runId))

    for (let index = 0; index < 100; index += 1) {
      await ctx.subagents.start('stub', { prompt: 'go', parent }).dispose()
    }

    expect(ids.size).toBe(100)
  })

  test.each(['subagent/start', 'subagent/update', 'subagent/end'] as const)(
    'a listener of %s that throws or rejects harms neither the run nor another listener',
    async (name) => {
      const ctx = await bootSeam({ expectErrors: /bad listener/ })
      const stub = createStub()
      ctx.subagents.registerProvider(stub)
      let heard = 0
      ctx.on(name, () => {
        throw new Error('bad listener')
      })
      ctx.on(name, async () => {
        throw new Error('bad listener too')
      })
      ctx.on(name, () => void (heard += 1))
      const run = ctx.subagents.start('stub', { prompt: 'go', parent: createParent(ctx) })

      stub.last().context.report({ kind: 'plan', text: 'one' })
      stub.last().settle({})

      expect(await run.result).toMatchObject({ stopReason: 'completed' })
      expect(heard).toBe(1)
      expect(ctx.subagents.runs()).toEqual([])
      await run.dispose()
    },
  )
})

describe('subagent/update', () => {
  test('comes after the start and before the end, whenever the provider reports', async () => {
    const ctx = await bootSeam()
    const heard: string[] = []
    const stub = createStub({
      onStart: (_request, context) => {
        context.report({ kind: 'text', text: 'early' })
        context.report({ kind: 'plan', text: 'then this' })
      },
    })
    ctx.subagents.registerProvider(stub)
    ctx.on('subagent/start', () => heard.push('start'))
    ctx.on('subagent/update', (update) => heard.push('text' in update ? update.text : update.kind))
    ctx.on('subagent/end', () => heard.push('end'))

    const run = ctx.subagents.start('stub', { prompt: 'go', parent: createParent(ctx) })
    const { context } = stub.last()
    context.report({ kind: 'text', text: 'last ' })
    context.report({ kind: 'text', text: 'words' })
    stub.last().settle({})
    await run.result
    context.report({ kind: 'text', text: 'from the grave' })
    context.report({ kind: 'plan', text: 'from the grave' })
    await run.dispose()

    expect(heard.join()).toMatch(/^start,early,then this,(last words|last ,words),end$/)
  })

  test('tells what an in-process child does, in order', async () => {
    const ctx = await bootSeam({
      hasSpawn: true,
      model: (_request, index) =>
        index === 0
          ? {
              reasoning: 'hm',
              text: 'let me look',
              calls: [
                { name: 'look', callId: 'a', input: { depth: 2, path: 'src/\n  index.ts' } },
                { name: 'vanish', callId: 'b' },
              ],
            }
          : 'found it',
    })
    ctx.tools.register({
      name: 'look',
      description: 'looks',
      parameters: z.object({ depth: z.number(), path: z.string() }),
      execute: async () => 'seen',
    })
    const updates: SubagentUpdate[] = []
    ctx.on('subagent/update', (update) => updates.push(update))
    const runIds: string[] = []
    ctx.on('subagent/start', ({ runId }) => runIds.push(runId))

    const run = ctx.subagents.start('spawn', { prompt: 'go', parent: createParent(ctx) })
    await run.result

    const [runId] = runIds
    const usage = { inputTokens: 10, outputTokens: 5 }
    expect(updates).toEqual([
      { runId, kind: 'reasoning', text: 'hm' },
      { runId, kind: 'text', text: 'let me look' },
      { runId, kind: 'usage', usage },
      { runId, kind: 'tool-start', callId: 'a', name: 'look', title: 'src/ index.ts' },
      { runId, kind: 'tool-end', callId: 'a', name: 'look', isError: false },
      { runId, kind: 'tool-start', callId: 'b', name: 'vanish' },
      { runId, kind: 'tool-end', callId: 'b', name: 'vanish', isError: true },
      { runId, kind: 'text', text: 'found it' },
      { runId, kind: 'usage', usage: { inputTokens: 20, outputTokens: 10 } },
    ])
    await run.dispose()
  })

  test.each([
    ['without any text', { n: 1 }, undefined],
    ['that is no object', 'raw text', undefined],
    ['that is null', null, undefined],
    ['of 60 characters', { p: 'x'.repeat(60) }, 'x'.repeat(60)],
    ['of more', { p: '🙂'.repeat(61) }, `${'🙂'.repeat(59)}…`],
    ['that is mostly space', { p: ` a${' '.repeat(237)}🙂` }, 'a \ufffd'],
  ])('names a tool call by its first text: input %s', async (_title, input, title) => {
    const ctx = await bootSeam({
      hasSpawn: true,
      model: (_request, index) => (index === 0 ? { calls: [{ name: 'any', input }] } : 'done'),
    })
    const titles: unknown[] = []
    ctx.on('subagent/update', (update) => {
      if (update.kind === 'tool-start') titles.push(update.title)
    })

    const run = ctx.subagents.start('spawn', { prompt: 'go', parent: createParent(ctx) })
    await run.result

    expect(titles).toEqual([title])
    await run.dispose()
  })

  test('belongs to the run of the child that caused it, also when several stream at once', async () => {
    const ctx = await bootSeam({
      hasSpawn: true,
      model: (request) => ({ deltas: Array(20).fill(promptOf(request)) }),
    })
    const parent = createParent(ctx)
    const textOfRun = new Map<string, string>()
    ctx.on('subagent/update', (update) => {
      if (update.kind !== 'text') return
      textOfRun.set(update.runId, (textOfRun.get(update.runId) ?? '') + update.text)
    })
    const runIds = new Map<string, string>()
    ctx.on('subagent/start', ({ id, runId }) => runIds.set(id, runId))

    const runs = ['a', 'b', 'c'].map((prompt) => ctx.subagents.start('spawn', { prompt, parent }))
    await Promise.all(runs.map(async ({ result }) => result))

    const texts = runs.map(({ id }) => textOfRun.get(runIds.get(id) ?? ''))
    expect(texts).toEqual(['a', 'b', 'c'].map((text) => text.repeat(20)))
    await Promise.all(runs.map((run) => run.dispose()))
  })

  test('says nothing of agents that are no children', async () => {
    const ctx = await bootSeam()
    const updates: unknown[] = []
    ctx.on('subagent/update', (update) => updates.push(update))

    await createParent(ctx).send('hello')

    expect(updates).toEqual([])
  })
})

describe('getRun()', () => {
  test('finds a live run by its child, and none after its end', async () => {
    const ctx = await bootSeam()
    ctx.subagents.registerProvider(createStub())
    const { agent: parent } = ctx.agents.create({ cwd: '/' })

    const run = ctx.subagents.start('stub', { prompt: 'go', parent })
    const found = ctx.subagents.getRun(run.id)
    await run.dispose()

    expect(found).toMatchObject({ id: run.id, parentId: parent.id })
    expect(ctx.subagents.getRun(run.id)).toBeUndefined()
  })
})

describe('runs()', () => {
  test('lists live runs, oldest first, and nothing after their end', async () => {
    const ctx = await bootSeam({ limits: { maxConcurrent: 1 } })
    const stub = createStub()
    ctx.subagents.registerProvider(stub)
    const { agent: parent } = ctx.agents.create({ cwd: '/', delegationDepth: 2 })
    const before = Date.now()

    const first = ctx.subagents.start('stub', { prompt: 'go', parent, label: 'scout' })
    const waiting = ctx.subagents.start('stub', { prompt: 'go', parent })
    const listed = ctx.subagents.runs()
    await Promise.all([first, waiting].map((run) => run.dispose()))

    const noUsage = { inputTokens: 0, outputTokens: 0 }
    expect(listed).toEqual([
      {
        runId: stub.runs[0]?.context.runId,
        provider: 'stub',
        id: first.id,
        parentId: parent.id,
        depth: 3,
        label: 'scout',
        startedAt: expect.any(Number) as number,
        usage: noUsage,
      },
      expect.objectContaining({ id: waiting.id, usage: noUsage }),
    ])
    expect(listed[0]?.startedAt).toBeGreaterThanOrEqual(before)
    expect(listed[1]).not.toHaveProperty('label')
    expect(ctx.subagents.runs()).toEqual([])
  })

  test('shows the tokens that a provider reports while its child runs', async () => {
    const ctx = await bootSeam()
    const stub = createStub()
    ctx.subagents.registerProvider(stub)
    const run = ctx.subagents.start('stub', { prompt: 'go', parent: createParent(ctx) })

    stub.last().context.report({ kind: 'usage', usage: { inputTokens: 1, outputTokens: 1 } })
    stub.last().context.report({ kind: 'usage', usage: { inputTokens: 7, outputTokens: 2 } })
    const [listed] = ctx.subagents.runs()
    stub.last().settle({})

    expect(listed?.usage).toEqual({ inputTokens: 7, outputTokens: 2 })
    expect((await run.result).usage).toEqual({ inputTokens: 7, outputTokens: 2 })
    await run.dispose()
  })
})

/** `lead` asks two teams at once, each asks one leaf; every reply costs 10 and 5 tokens. */
const tree: SeamOptions['model'] = (request) => {
  const prompt = promptOf(request)
  const asks: Record<string, string[]> = {
    lead: ['team 1', 'team 2'],
    'team 1': ['leaf'],
    'team 2': ['leaf'],
  }
  const isAnswered = request.messages.at(-1)?.role === 'tool'
  const calls = isAnswered ? [] : (asks[prompt] ?? [])
  return {
    text: `${prompt} done`,
    calls: calls.map((next, index) => ({
      name: 'delegate',
      callId: `${index}`,
      input: { prompt: next },
    })),
  }
}

describe('usage', () => {
  test('of a result is that of the child and all its descendants, counted once', async () => {
    const ctx = await bootSeam({ hasSpawn: true, model: tree })
    registerDelegate(ctx)
    const ended: unknown[] = []
    ctx.on('subagent/end', ({ usage }) => ended.push(usage?.inputTokens))

    const run = ctx.subagents.start('spawn', { prompt: 'lead', parent: createParent(ctx) })
    const { usage } = await run.result

    // A leaf answers once, a team and the lead twice.
    expect(usage).toEqual({ inputTokens: 80, outputTokens: 40 })
    expect(ended).toEqual([10, 10, 30, 30, 80])
    await run.dispose()
  })

  test('of descendants shows in their ancestors while they run', async () => {
    const held = gate()
    const ctx = await bootSeam({
      hasSpawn: true,
      model: async (request, index) => {
        const reply = await tree(request, index)
        if (promptOf(request) === 'team 2' && index === 1) await held.opened
        return reply
      },
    })
    registerDelegate(ctx)
    const run = ctx.subagents.start('spawn', { prompt: 'lead', parent: createParent(ctx) })
    const inputs = (): number[] => ctx.subagents.runs().map(({ usage }) => usage.inputTokens)

    await waitFor('one team is left', () => inputs().join() === '60,20')
    held.open()

    expect((await run.result).usage?.inputTokens).toBe(80)
    await run.dispose()
  })

  test('of an aborted run holds what was used by then', async () => {
    const ctx = await bootSeam({
      hasSpawn: true,
      model: (request, index) =>
        promptOf(request) === 'leaf' ? { until: new Promise(() => {}) } : tree(request, index),
    })
    registerDelegate(ctx)
    const run = ctx.subagents.start('spawn', { prompt: 'lead', parent: createParent(ctx) })
    await waitFor('both leaves run', () => ctx.subagents.runs().length === 5)

    run.cancel()

    expect((await run.result).usage).toEqual({ inputTokens: 30, outputTokens: 15 })
    await run.dispose()
  })
})

/** Delegates down to depth 3, whose model never answers. */
const deep: SeamOptions['model'] = (request) => {
  const left = Number(promptOf(request))
  return left === 0
    ? { text: 'thinking', until: new Promise(() => {}) }
    : { calls: [{ name: 'delegate', input: { prompt: `${left - 1}` } }] }
}

describe('a tree of runs', () => {
  test.each([
    ['that hand the signal on', {}],
    ['that do not', { signal: undefined }],
  ])('ends with one cancel at every depth, through tools %s', async (_title, extra) => {
    const requests: string[] = []
    const ctx = await bootSeam({
      hasSpawn: true,
      model: (request, index) => {
        requests.push(request.sessionId)
        return deep(request, index)
      },
    })
    registerDelegate(ctx, extra)
    const parent = createParent(ctx)
    const run = ctx.subagents.start('spawn', { prompt: '2', parent })
    await waitFor('the deepest child thinks', () => requests.length === 3)
    const ends: string[] = []
    ctx.on('subagent/end', ({ stopReason }) => ends.push(stopReason))

    run.cancel('enough')
    const result = await run.result
    await waitFor('all runs are over', () => ctx.subagents.runs().length === 0)
    await run.dispose()

    expect(result).toMatchObject({ stopReason: 'aborted', diagnostic: 'enough' })
    expect(ends).toEqual(['aborted', 'aborted', 'aborted'])
    expect(requests).toHaveLength(3)
    expect(ctx.agents.list()).toEqual([parent])
  })

  test('is disposed depth first when its root agent is', async () => {
    const ctx = await bootSeam({ hasSpawn: true, model: deep })
    registerDelegate(ctx)
    const { agent: parent, dispose } = ctx.agents.create({ cwd: '/' })
    const run = ctx.subagents.start('spawn', { prompt: '2', parent })
    await waitFor('three children run', () => ctx.subagents.runs().length === 3)
    const gone: number[] = []
    ctx.on('agent/disposed', ({ agent }) => gone.push(agent.session.header.delegationDepth))

    await dispose()

    expect(gone).toEqual([3, 2, 1, 0])
    expect(ctx.agents.list()).toEqual([])
    expect(ctx.sessions.list()).toEqual([])
    expect(await run.result).toMatchObject({ stopReason: 'aborted' })
  })

  test('a cancel of one of two siblings leaves the other alone', async () => {
    const held = gate()
    const ctx = await bootSeam({
      hasSpawn: true,
      model: (request) => ({ text: promptOf(request), until: held.opened }),
    })
    const parent = createParent(ctx)
    const one = ctx.subagents.start('spawn', { prompt: 'one', parent })
    const two = ctx.subagents.start('spawn', { prompt: 'two', parent })

    one.cancel()
    const first = await one.result
    held.open()
    const second = await two.result

    expect(first?.stopReason).toBe('aborted')
    expect(second).toMatchObject({ stopReason: 'completed', output: textOutput('two') })
    await Promise.all([one, two].map((run) => run.dispose()))
  })

  test('a run whose child has a tool that tells of its progress is not idle', async () => {
    const ctx = await bootSeam()
    const stub = createStub()
    ctx.subagents.registerProvider(stub)
    const held = gate()
    const progress: ((text: string) => void)[] = []
    ctx.tools.register({
      name: 'build',
      description: 'takes its time',
      parameters: z.object({}),
      execute: async (_, { update }) => {
        progress.push((text) => update({ text }))
        await held.opened
        return 'built'
      },
    })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const run = ctx.subagents.start('stub', {
      prompt: 'go',
      parent: createParent(ctx),
      idleTimeoutMs: 100,
    })
    const agent = ctx.agents.create({ id: run.id, cwd: '/', delegationDepth: 1 }).agent
    const { signal } = new AbortController()
    const call = ctx.tools.execute({ agent, callId: 'c', name: 'build', input: {}, signal })

    vi.advanceTimersByTime(99)
    for (const tell of progress) tell('half of it')
    vi.advanceTimersByTime(99)
    const cancelsBefore = [...(stub.runs[0]?.cancels ?? [])]
    vi.advanceTimersByTime(1)

    expect(progress).toHaveLength(1)
    expect(cancelsBefore).toEqual([])
    expect((await run.result).diagnostic).toBe('timeout: no sign of life for 100 ms')
    held.open()
    await call
    await run.dispose()
  })

  test('a run whose child shows life is not idle', async () => {
    const ctx = await bootSeam()
    const stub = createStub()
    ctx.subagents.registerProvider(stub)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const parent = createParent(ctx)
    const run = ctx.subagents.start('stub', { prompt: 'go', parent, idleTimeoutMs: 100 })
    const child = ctx.agents.create({ id: run.id, cwd: '/', delegationDepth: 1 }).agent
    const nested = ctx.subagents.start('stub', { prompt: 'go', parent: child })

    vi.advanceTimersByTime(99)
    stub.runs[1]?.context.report({ kind: 'text', text: '.' })
    vi.advanceTimersByTime(99)
    const cancelsBefore = [...(stub.runs[0]?.cancels ?? [])]
    vi.advanceTimersByTime(1)

    expect(cancelsBefore).toEqual([])
    expect((await run.result).diagnostic).toBe('timeout: no sign of life for 100 ms')
    await Promise.all([run, nested].map((each) => each.dispose()))
  })
})
