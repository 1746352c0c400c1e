import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { SubagentService } from '../src/index.ts'
import { bootSeam, countListeners, createParent, createStub } from './helpers.ts'

describe('SubagentService.registerProvider', () => {
  test('lists providers in the order of registration and gives them by name', async () => {
    const ctx = await bootSeam()
    const beta = createStub({ name: 'beta' })
    ctx.subagents.registerProvider(beta)
    ctx.subagents.registerProvider(createStub({ name: 'alpha' }))

    const names = ctx.subagents.list()

    expect(names).toEqual(['beta', 'alpha'])
    expect(ctx.subagents.getProvider('beta')).toBe(beta)
    expect(ctx.subagents.getProvider('gamma')).toBeUndefined()
  })

  test('announces a provider after it can be found', async () => {
    const ctx = await bootSeam()
    const found: unknown[] = []
    ctx.on('subagent/provider-added', ({ provider }) => {
      found.push(ctx.subagents.getProvider(provider.name))
    })
    const stub = createStub()

    ctx.subagents.registerProvider(stub)

    expect(found).toEqual([stub])
  })

  test('refuses a second provider with the same name and keeps the first', async () => {
    const ctx = await bootSeam()
    const first = createStub()
    ctx.subagents.registerProvider(first)
    const removed: unknown[] = []
    ctx.on('subagent/provider-removed', (payload) => removed.push(payload))

    const register = () => ctx.subagents.registerProvider(createStub())

    expect(register).toThrow(
      expect.objectContaining({
        code: 'DUPLICATE_PROVIDER',
        message:
          'subagent provider "stub" is already registered: give one of the two another providerName',
      }),
    )
    expect(ctx.subagents.getProvider('stub')).toBe(first)
    expect(removed).toEqual([])
  })

  test('removes a provider once, however often its disposer is called', async () => {
    const ctx = await bootSeam()
    const stub = createStub()
    const removed: unknown[] = []
    ctx.on('subagent/provider-removed', ({ provider }) => removed.push(provider))
    const dispose = ctx.subagents.registerProvider(stub)

    await dispose()
    ctx.subagents.registerProvider(createStub())
    await dispose()

    expect(removed).toEqual([stub])
    expect(ctx.subagents.list()).toEqual(['stub'])
  })

  test('removes the providers of a plugin that is unloaded', async () => {
    const ctx = await bootSeam()
    const fiber = await ctx.plugin({
      name: 'backend',
      inject: ['subagents'],
      apply(inner: typeof ctx) {
        inner.subagents.registerProvider(createStub())
      },
    })
    expect(ctx.subagents.list()).toEqual(['stub'])

    await fiber.dispose()

    expect(ctx.subagents.list()).toEqual([])
  })

  test('takes a registration back when a provider-added listener throws', async () => {
    const ctx = await bootSeam()
    const heard: string[] = []
    ctx.on('subagent/provider-added', () => heard.push('added'))
    ctx.on('subagent/provider-removed', () => heard.push('removed'))
    const stop = ctx.on('subagent/provider-added', () => {
      throw new Error('not in this house')
    })

    const register = () => ctx.subagents.registerProvider(createStub())

    expect(register).toThrow('not in this house')
    expect(ctx.subagents.list()).toEqual([])
    expect(heard).toEqual(['added', 'removed'])
    stop()
    expect(register).not.toThrow()
  })

  test('logs a provider-added listener that rejects, and keeps the provider', async () => {
    const ctx = await bootSeam({ expectErrors: /too late to refuse/ })
    const logged: unknown[] = []
    ctx.logger.exporter({ export: ({ type }) => void (type === 'error' && logged.push(type)) })
    ctx.on('subagent/provider-added', async () => {
      throw new Error('too late to refuse')
    })

    ctx.subagents.registerProvider(createStub())

    await waitFor('the rejection is logged', () => logged.length === 1)
    expect(ctx.subagents.list()).toEqual(['stub'])
  })

  test('tells every provider-removed listener, though some throw or reject', async () => {
    const ctx = await bootSeam({ expectErrors: /bad listener/ })
    const heard: string[] = []
    ctx.on('subagent/provider-removed', () => {
      throw new Error('bad listener')
    })
    ctx.on('subagent/provider-removed', async () => {
      throw new Error('bad listener too')
    })
    ctx.on('subagent/provider-removed', ({ provider }) => heard.push(provider.name))
    const dispose = ctx.subagents.registerProvider(createStub())

    await dispose()

    expect(heard).toEqual(['stub'])
    expect(ctx.subagents.list()).toEqual([])
  })
})

describe('SubagentService.start', () => {
  test('gives a run that its caller waits for and disposes', async () => {
    const ctx = await bootSeam()
    const stub = createStub({ onStart: () => setImmediate(() => stub.last().settle({})) })
    ctx.subagents.registerProvider(stub)
    const parent = createParent(ctx)
    const reports: unknown[] = []
    const report = (...facts: unknown[]): void => void reports.push(facts)

    const run = ctx.subagents.start('stub', { prompt: 'find the bug', parent })
    try {
      const { output, stopReason } = await run.result
      report(stopReason, output)
    } finally {
      await run.dispose()
    }

    expect(reports).toEqual([['completed', []]])
    expect(stub.last()).toMatchObject({ disposals: 1, cancels: [] })
  })

  test.each([
    [[], 'no subagent provider "acpp" (registered: none)'],
    [['spawn', 'acp'], 'no subagent provider "acpp" (registered: spawn, acp)'],
  ])('refuses an unknown provider and lists the known ones: %j', async (names, message) => {
    const ctx = await bootSeam()
    for (const name of names) ctx.subagents.registerProvider(createStub({ name }))
    const parent = createParent(ctx)

    const start = () => ctx.subagents.start('acpp', { prompt: 'go', parent })

    expect(start).toThrow(expect.objectContaining({ code: 'NO_PROVIDER', message }))
  })

  test('refuses new starts of an unloaded backend, whose live runs finish', async () => {
    const ctx = await bootSeam()
    const stub = createStub()
    const unload = ctx.subagents.registerProvider(stub)
    const parent = createParent(ctx)
    const run = ctx.subagents.start('stub', { prompt: 'go', parent })

    await unload()

    expect(() => ctx.subagents.start('stub', { prompt: 'go', parent })).toThrow(/no subagent/)
    stub.last().settle({ output: [{ type: 'text', text: 'done' }] })
    expect(await run.result).toMatchObject({ stopReason: 'completed' })
    expect(stub.last().cancels).toEqual([])
    await run.dispose()
  })
})

describe('SubagentService', () => {
  test.each([
    { maxConcurrent: 0 },
    { maxConcurrentPerParent: 0.5 },
    { maxPerTurn: -1 },
    { maxPerTurn: 'many' },
  ])('refuses the limits %j', (limits) => {
    expect(() => SubagentService.Config(limits as never)).toThrow(/expected/)
  })

  test('has limits without any config', () => {
    expect(SubagentService.Config({})).toEqual({
      maxConcurrent: 16,
      maxConcurrentPerParent: 8,
      maxPerTurn: 32,
      disposeTimeoutMs: 30_000,
    })
  })

  test('ends and disposes its runs when it is unloaded, those that wait too', async () => {
    const ctx = await bootSeam({ limits: { maxConcurrent: 1 } })
    const stub = createStub()
    ctx.subagents.registerProvider(stub)
    const parent = createParent(ctx)
    const runs = ['one', 'two'].map((prompt) => ctx.subagents.start('stub', { prompt, parent }))
    const entry = [...ctx.loader.entries()].find(
      ({ options }) => options.name === '@deepseek-ai/dsh-subagent',
    )

    await entry?.fiber?.dispose()

    const results = await Promise.all(runs.map(async ({ result }) => result))
    expect(results.map(({ stopReason }) => stopReason)).toEqual(['aborted', 'aborted'])
    expect(stub.runs.map(({ disposals }) => disposals)).toEqual([1])
    expect(ctx.get('subagents')).toBeUndefined()
  })

  test('leaves no listener behind after twenty reloads of the seam', async () => {
    const ctx = await bootSeam()
    const entry = [...ctx.loader.entries()].find(
      ({ options }) => options.name === '@deepseek-ai/dsh-subagent',
    )
    const before = countListeners(ctx)

    for (let reload = 0; reload < 20; reload += 1) await entry?.fiber?.restart()

    expect(countListeners(ctx)).toBe(before)
    expect(ctx.subagents.list()).toEqual([])
  })
})
