import type { Agent } from '@deepseek-ai/dsh-agent'
import { collectWarnings, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { SubagentRun, SubagentStartRequest } from '../src/index.ts'
import {
  abortListenersOf,
  bootSeam,
  createParent,
  createStub,
  type SeamOptions,
  type StubOptions,
  type StubProvider,
  textOf,
  textOutput,
} from './helpers.ts'

interface Bench {
  readonly ctx: Awaited<ReturnType<typeof bootSeam>>
  readonly parent: Agent
  readonly stub: StubProvider
  readonly start: (extra?: Partial<SubagentStartRequest>) => SubagentRun
  /** The names of the lifecycle events so far. */
  readonly heard: string[]
}

async function createBench(stubOptions: StubOptions = {}, options?: SeamOptions): Promise<Bench> {
  const ctx = await bootSeam(options)
  const stub = createStub(stubOptions)
  ctx.subagents.registerProvider(stub)
  const parent = createParent(ctx)
  const heard: string[] = []
  ctx.on('subagent/start', () => heard.push('start'))
  ctx.on('subagent/update', ({ kind }) => heard.push(kind))
  ctx.on('subagent/end', () => heard.push('end'))
  const start = (extra: Partial<SubagentStartRequest> = {}): SubagentRun =>
    ctx.subagents.start('stub', { prompt: 'go', parent, ...extra })
  return { ctx, parent, stub, start, heard }
}

/** Tells how much is tied to the life of an agent from now on. */
function countTies(agent: Agent): () => number {
  let ties = 0
  const onDispose = agent.onDispose.bind(agent)
  agent.onDispose = (callback) => {
    const untie = onDispose(callback)
    ties += 1
    return () => {
      ties -= 1
      untie()
    }
  }
  return () => ties
}

/** Puts timers under the test's control; to be called after the boot. */
function stopClock(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
}

describe('SubagentRun.result', () => {
  test('is what the provider gave, under the id that the service minted', async () => {
    const { stub, start, ctx } = await createBench()
    const run = start()

    stub.last().settle({ output: textOutput('found it'), structured: { line: 7 } })
    const result = await run.result

    expect(result).toEqual({
      output: textOutput('found it'),
      structured: { line: 7 },
      stopReason: 'completed',
    })
    expect(run.id).toBe(stub.last().context.childId)
    expect(ctx.subagents.runs()).toEqual([])
    await run.dispose()
  })

  test('has an output that nobody can change', async () => {
    const { stub, start } = await createBench()
    const output = [{ type: 'text' as const, text: 'mine' }]
    const run = start()

    stub.last().settle({ output })
    const result = await run.result
    output.push({ type: 'text', text: 'yours' })

    expect(textOf(result)).toBe('mine')
    expect(Object.isFrozen(result.output)).toBe(true)
    expect(Object.isFrozen(result.output[0])).toBe(true)
    await run.dispose()
  })

  test('carries no structured value unless the run completed', async () => {
    const { stub, start } = await createBench()
    const run = start()

    stub.last().settle({ structured: { half: true }, stopReason: 'max-tokens' })

    expect(await run.result).toEqual({ output: [], stopReason: 'max-tokens' })
    await run.dispose()
  })

  test('is an error that names the provider when the provider rejects', async () => {
    const { stub, start } = await createBench()
    const run = start()

    stub.last().fail(new Error('the pipe broke'))

    expect(await run.result).toEqual({
      output: [],
      stopReason: 'error',
      diagnostic: 'subagent provider "stub" failed: the pipe broke',
    })
    await run.dispose()
  })

  test.each([
    ['no result at all', undefined],
    ['an output that is missing', { output: undefined, stopReason: 'completed' }],
    ['an output that is no JSON', { output: [{ type: 'text', text: () => 'x' }] }],
  ])('is an error when the provider gives %s', async (_title, bad) => {
    const { start, ctx } = await createBench({
      extras: () => ({ result: Promise.resolve(bad as never) }),
    })
    const run = start()

    const result = await run.result

    expect(result).toMatchObject({ output: [], stopReason: 'error' })
    expect(result.diagnostic).toMatch(/^subagent provider "stub" failed: /)
    expect(ctx.subagents.runs()).toEqual([])
    await run.dispose()
  })

  test.each([
    ['short', 'it broke', 'it broke'],
    ['exactly 4 KiB', 'x'.repeat(4096), 'x'.repeat(4096)],
    ['a lone surrogate', 'a\ud83d', 'a\ufffd'],
  ])('keeps a diagnostic that is %s', async (_title, diagnostic, expected) => {
    const { stub, start } = await createBench()
    const run = start()

    stub.last().settle({ stopReason: 'error', diagnostic })

    expect((await run.result).diagnostic).toBe(expected)
    await run.dispose()
  })

  test.each([0, 1, 2, 3])(
    'cuts a long diagnostic to 4 KiB on a code-point border, shifted by %i bytes',
    async (shift) => {
      const { stub, start } = await createBench()
      const text = 'x'.repeat(shift) + '🙂'.repeat(2000)
      const run = start()

      stub.last().settle({ stopReason: 'error', diagnostic: text })
      const { diagnostic = '' } = await run.result

      expect(Buffer.byteLength(diagnostic)).toBeLessThanOrEqual(4096)
      expect(Buffer.byteLength(diagnostic)).toBeGreaterThan(4080)
      expect(diagnostic.endsWith('🙂…')).toBe(true)
      expect(text.startsWith(diagnostic.slice(0, -1))).toBe(true)
      await run.dispose()
    },
  )
})

describe('SubagentRun.cancel', () => {
  test('makes the result aborted and tells why', async () => {
    const { stub, start, ctx } = await createBench()
    const run = start()

    run.cancel('enough')

    expect(await run.result).toEqual({ output: [], stopReason: 'aborted', diagnostic: 'enough' })
    expect(stub.last().cancels).toEqual(['enough'])
    expect(ctx.subagents.runs()).toEqual([])
    await run.dispose()
  })

  test('reaches the provider once, also when called twice and after the end', async () => {
    const { stub, start } = await createBench()
    const run = start()

    run.cancel('first')
    run.cancel('second')
    const result = await run.result
    run.cancel('third')
    await run.dispose()
    run.cancel('fourth')

    expect(result.diagnostic).toBe('first')
    expect(stub.last().cancels).toEqual(['first'])
  })

  test('changes nothing after the end', async () => {
    const { stub, start } = await createBench()
    const run = start()
    stub.last().settle({ output: textOutput('done') })
    await run.result

    run.cancel('too late')

    expect(await run.result).toMatchObject({ stopReason: 'completed' })
    expect(stub.last().cancels).toEqual([])
    await run.dispose()
  })

  test('wins over a provider that says completed; its text is kept', async () => {
    const { start } = await createBench({
      onCancel: (run) =>
        run.settle({ output: textOutput('partial'), structured: 1, diagnostic: 'all fine' }),
    })
    const run = start()

    run.cancel('enough')

    expect(await run.result).toEqual({
      output: textOutput('partial'),
      stopReason: 'aborted',
      diagnostic: 'enough',
    })
    await run.dispose()
  })

  test('settles the result though the provider ignores it, and what comes later is ignored', async () => {
    const { stub, start, heard } = await createBench({ onCancel: () => {} })
    const run = start()

    run.cancel()
    const result = await run.result
    const heardByThen = [...heard]
    stub.last().settle({ output: textOutput('late') })
    stub.last().context.report({ kind: 'text', text: 'later' })
    await run.dispose()

    expect(result).toEqual({ output: [], stopReason: 'aborted' })
    expect(heard).toEqual(heardByThen)
    expect(await run.result).toBe(result)
  })

  test('survives a provider that throws in cancel, and warns', async () => {
    const { start, ctx } = await createBench({
      onCancel: () => {
        throw new Error('no brakes')
      },
    })
    const warnings = collectWarnings(ctx)
    const run = start()

    run.cancel()

    expect(await run.result).toMatchObject({ stopReason: 'aborted' })
    expect(warnings.join()).toMatch(/no brakes.*provider "stub" failed to cancel run "[-0-9a-f]+"/s)
    await run.dispose()
  })

  test('a provider that rejects after the cancel is aborted', async () => {
    const { start } = await createBench({ onCancel: (run) => run.fail(new Error('cut off')) })
    const run = start()

    run.cancel()

    expect(await run.result).toMatchObject({ stopReason: 'aborted' })
    await run.dispose()
  })

  test.each(['started', 'registered'])(
    'reaches a child whose start is still under way, when it is %s',
    async (moment) => {
      const controller = new AbortController()
      const { stub, start, ctx, heard } = await createBench({
        onStart: () => moment === 'started' && controller.abort('changed my mind'),
      })
      if (moment === 'registered')
        ctx.on('subagent/start', () => controller.abort('changed my mind'))

      const run = start({ signal: controller.signal })
      const result = await run.result
      await run.dispose()

      expect(result).toMatchObject({ stopReason: 'aborted', diagnostic: 'changed my mind' })
      expect(stub.last().cancels).toEqual(['changed my mind'])
      expect(stub.last().disposals).toBe(1)
      expect(heard).toEqual(['start', 'end'])
      expect(ctx.subagents.runs()).toEqual([])
    },
  )
})

describe('SubagentStartRequest.signal', () => {
  test('that is aborted already starts nothing', async () => {
    const { stub, start, ctx, parent, heard } = await createBench()
    const signal = AbortSignal.abort('never mind')

    const run = start({ signal })

    expect(await run.result).toEqual({
      output: [],
      stopReason: 'aborted',
      diagnostic: 'never mind',
    })
    run.cancel()
    await run.dispose()
    await run.dispose()
    expect(stub.runs).toEqual([])
    expect(heard).toEqual([])
    expect(ctx.subagents.runs()).toEqual([])
    expect(ctx.agents.list()).toEqual([parent])
    expect(abortListenersOf(signal)).toBe(0)
  })

  test('cancels the run when it is aborted', async () => {
    const { stub, start } = await createBench()
    const controller = new AbortController()
    const run = start({ signal: controller.signal })

    controller.abort('stop it')

    expect(await run.result).toMatchObject({ stopReason: 'aborted', diagnostic: 'stop it' })
    expect(stub.last().cancels).toEqual(['stop it'])
    await run.dispose()
  })

  test('is not asked any more after the end', async () => {
    const { stub, start } = await createBench()
    const controller = new AbortController()
    const run = start({ signal: controller.signal })
    stub.last().settle({})
    await run.result

    expect(abortListenersOf(controller.signal)).toBe(0)
    controller.abort()

    expect(await run.result).toMatchObject({ stopReason: 'completed' })
    expect(stub.last().cancels).toEqual([])
    await run.dispose()
  })

  test('keeps no listener after 1,000 runs, and 20 at once raise no warning', async () => {
    const { stub, start } = await createBench(
      {},
      { limits: { maxConcurrentPerParent: 20, maxConcurrent: 20 } },
    )
    const warnings: Error[] = []
    const onWarning = (warning: Error): unknown => warnings.push(warning)
    process.on('warning', onWarning)
    onTestFinished(() => void process.off('warning', onWarning))
    const { signal } = new AbortController()

    for (let batch = 0; batch < 50; batch += 1) {
      const runs = Array.from({ length: 20 }, () => start({ signal }))
      for (const run of stub.runs.splice(0)) run.settle({})
      await Promise.all(runs.map(async ({ result }) => result))
      await Promise.all(runs.map((run) => run.dispose()))
    }
    await new Promise(setImmediate)

    expect(abortListenersOf(signal)).toBe(0)
    expect(warnings).toEqual([])
  })
})

describe('SubagentRun.dispose', () => {
  test('disposes the child once and gives the same promise each time', async () => {
    const { stub, start } = await createBench()
    const run = start()
    stub.last().settle({})
    await run.result

    const first = run.dispose()
    const second = run.dispose()
    await first

    expect(second).toBe(first)
    expect(stub.last().disposals).toBe(1)
  })

  test('cancels a run that is not over', async () => {
    const { stub, start } = await createBench()
    const run = start()

    await run.dispose()

    expect(await run.result).toMatchObject({
      stopReason: 'aborted',
      diagnostic: 'the run was disposed',
    })
    expect(stub.last()).toMatchObject({ cancels: ['the run was disposed'], disposals: 1 })
  })

  test('waits until the child is gone', async () => {
    const gone = Promise.withResolvers<void>()
    const { start, stub } = await createBench({ onDispose: () => gone.promise })
    const run = start()
    let isDisposed = false

    const disposal = run.dispose().finally(() => {
      isDisposed = true
    })
    await run.result
    await waitFor('the child is asked to go', () => stub.last().disposals === 1)
    await new Promise(setImmediate)

    expect(isDisposed).toBe(false)
    gone.resolve()
    await disposal
  })

  test('settles though the provider rejects, and warns', async () => {
    const { start, ctx } = await createBench({
      onDispose: async () => {
        throw new Error('will not go')
      },
    })
    const warnings = collectWarnings(ctx)

    await start().dispose()

    expect(warnings.join()).toMatch(/will not go.*provider "stub" failed to dispose run/s)
  })

  test('waits disposeTimeoutMs for a provider that never lets go, and warns', async () => {
    const { start, ctx } = await createBench(
      { onDispose: () => new Promise(() => {}) },
      { limits: { disposeTimeoutMs: 20 } },
    )
    const warnings = collectWarnings(ctx)
    const run = start()

    await run.dispose()

    const { stopReason } = await run.result
    expect(stopReason).toBe('aborted')
    expect(warnings.join()).toMatch(/not gone after 20 ms.*"stub" failed to dispose run/s)
  })

  test('hears of a child that fails to go after disposeTimeoutMs', async () => {
    const late = Promise.withResolvers<void>()
    const { start, ctx } = await createBench(
      { onDispose: () => late.promise },
      { limits: { disposeTimeoutMs: 20 } },
    )
    const warnings = collectWarnings(ctx)
    await start().dispose()

    late.reject(new Error('came too late'))

    const heard = (): boolean => warnings.some((text) => text.includes('came too late'))
    await waitFor('the late failure', heard)
    expect(heard()).toBe(true)
  })

  test('waits for the result of a provider that is slow to settle', async () => {
    const { start } = await createBench({ onCancel: () => {} })
    const run = start()
    const order: string[] = []

    const settled = run.result.then(() => order.push('result'))
    await run.dispose()
    order.push('disposed')
    await settled

    expect(order).toEqual(['result', 'disposed'])
  })

  test('unties the run from its parent, like a start that fails', async () => {
    const { parent, start } = await createBench(
      {
        onStart: ({ prompt }) => {
          if (prompt === 'doomed') throw new Error('no engine')
        },
      },
      { limits: { maxConcurrent: 1 } },
    )
    const ties = countTies(parent)

    const runs = [start(), start()]
    const whileLive = ties()
    await Promise.all(runs.map((run) => run.dispose()))
    const afterwards = ties()

    expect(whileLive).toBe(2)
    expect(afterwards).toBe(0)
    expect(() => start({ prompt: 'doomed' })).toThrow('no engine')
    expect(ties()).toBe(0)
  })

  test('comes with the end of the parent', async () => {
    const { stub, ctx } = await createBench()
    const { agent: parent, dispose } = ctx.agents.create({ cwd: '/' })
    const run = ctx.subagents.start('stub', { prompt: 'go', parent })

    await dispose()

    expect(stub.last()).toMatchObject({ disposals: 1 })
    expect(await run.result).toMatchObject({ stopReason: 'aborted' })
    expect(ctx.subagents.runs()).toEqual([])
  })

  test('of a parent reaches a child whose start is still under way', async () => {
    let disposal: Promise<void> | undefined
    const { stub, ctx } = await createBench({
      onStart: () => {
        disposal = handle.dispose()
      },
    })
    const handle = ctx.agents.create({ cwd: '/' })

    const run = ctx.subagents.start('stub', { prompt: 'go', parent: handle.agent })
    await disposal

    expect(await run.result).toMatchObject({ stopReason: 'aborted' })
    expect(stub.last()).toMatchObject({ disposals: 1 })
  })
})

describe('timeoutMs', () => {
  test('ends a run that takes too long as aborted, and says so', async () => {
    const { stub, start } = await createBench({
      onCancel: (run) => run.settle({ output: textOutput('half') }),
    })
    stopClock()
    const run = start({ timeoutMs: 1000 })

    vi.advanceTimersByTime(999)
    const cancelsBefore = [...stub.last().cancels]
    vi.advanceTimersByTime(1)

    expect(cancelsBefore).toEqual([])
    expect(await run.result).toEqual({
      output: textOutput('half'),
      stopReason: 'aborted',
      diagnostic: 'timeout: the run took longer than 1000 ms',
    })
    await run.dispose()
  })

  test('does not care for life, and leaves no timer after the end', async () => {
    const { stub, start } = await createBench()
    stopClock()
    const run = start({ timeoutMs: 1000, idleTimeoutMs: 500 })
    const { context } = stub.last()

    for (let index = 0; index < 4; index += 1) {
      vi.advanceTimersByTime(240)
      context.report({ kind: 'text', text: '.' })
    }
    vi.advanceTimersByTime(40)

    expect((await run.result).diagnostic).toBe('timeout: the run took longer than 1000 ms')
    expect(vi.getTimerCount()).toBe(0)
    await run.dispose()
  })

  test('starts when the run starts, not while it waits in the queue', async () => {
    const { stub, start } = await createBench({}, { limits: { maxConcurrent: 1 } })
    stopClock()
    const first = start()
    const second = start({ timeoutMs: 100, idleTimeoutMs: 100 })

    vi.advanceTimersByTime(5000)
    stub.last().settle({})
    await first.result
    vi.advanceTimersByTime(99)

    expect(stub.runs).toHaveLength(2)
    expect(stub.last().cancels).toEqual([])
    vi.advanceTimersByTime(1)
    expect(await second.result).toMatchObject({ stopReason: 'aborted' })
    await Promise.all([first.dispose(), second.dispose()])
  })

  test('a child that ends in time leaves no timer', async () => {
    const { stub, start } = await createBench()
    stopClock()
    const run = start({ timeoutMs: 1000, idleTimeoutMs: 500 })

    stub.last().settle({})

    expect(await run.result).toMatchObject({ stopReason: 'completed' })
    expect(vi.getTimerCount()).toBe(0)
    await run.dispose()
  })
})

describe('idleTimeoutMs', () => {
  test('ends a child that never shows any life', async () => {
    const { start } = await createBench()
    stopClock()
    const run = start({ idleTimeoutMs: 300 })

    vi.advanceTimersByTime(300)

    expect(await run.result).toMatchObject({
      stopReason: 'aborted',
      diagnostic: 'timeout: no sign of life for 300 ms',
    })
    await run.dispose()
  })

  test.each([
    { kind: 'text', text: 'a' } as const,
    { kind: 'reasoning', text: 'a' } as const,
    { kind: 'tool-start', callId: 'c', name: 'bash' } as const,
    { kind: 'tool-end', callId: 'c', name: 'bash', isError: false } as const,
    { kind: 'usage', usage: { inputTokens: 1, outputTokens: 1 } } as const,
    { kind: 'plan', text: 'one, two' } as const,
    { kind: 'text', text: '' } as const,
  ])('counts from the last sign of life: $kind', async (activity) => {
    const { stub, start } = await createBench()
    stopClock()
    const run = start({ idleTimeoutMs: 300 })

    vi.advanceTimersByTime(299)
    stub.last().context.report(activity)
    vi.advanceTimersByTime(299)
    const cancelsBefore = [...stub.last().cancels]
    vi.advanceTimersByTime(1)

    expect(cancelsBefore).toEqual([])
    expect((await run.result).diagnostic).toBe('timeout: no sign of life for 300 ms')
    await run.dispose()
  })
})

describe('optional methods of a run', () => {
  test('are absent when the provider has none', async () => {
    const { start } = await createBench()

    const run = start()

    expect('sendMessage' in run).toBe(false)
    expect('resume' in run).toBe(false)
    await run.dispose()
  })

  test('reach the provider', async () => {
    const sent: string[] = []
    const { start } = await createBench({
      extras: () => ({
        sendMessage: async (text) => void sent.push(text),
        resume: async (prompt) => ({ output: textOutput(prompt), stopReason: 'completed' }),
      }),
    })
    const run = start()

    await run.sendMessage?.('hurry')

    expect(sent).toEqual(['hurry'])
    expect(await run.resume?.('more')).toMatchObject({ output: textOutput('more') })
    await run.dispose()
  })
})
