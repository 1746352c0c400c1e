/** The scenarios: each gives one figure of the harness's own cost. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentHandle } from '@deepseek-ai/dsh-agent'
import { createHarness, delegate, type Harness, type HarnessOptions } from './harness.ts'

export interface Scenario {
  readonly title: string
  readonly unit: 'µs' | 'ms' | 'KB' | 'bytes'
  /** What the figure should not exceed. */
  readonly goal?: number
  /** Gives the figure; called several times, each time in a process of its own. */
  measure(): Promise<number>
}

/** By name, in the order in which they are run and shown. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  sequential: {
    title: 'one delegation, sequential',
    unit: 'µs',
    goal: 150,
    measure: () => perDelegation({}, 2000),
  },
  parallel: {
    title: '200 parents in parallel, each',
    unit: 'µs',
    goal: 150,
    measure: () => withHarness({}, parallelParents),
  },
  fanOut: {
    title: '50 calls in one message, each',
    unit: 'µs',
    goal: 150,
    measure: () => withHarness({}, fanOut),
  },
  deltas: {
    title: 'a child streams 200 deltas, with a listener',
    unit: 'µs',
    goal: 700,
    measure: () => withHarness({ deltas: 200 }, streamed),
  },
  heapLive: {
    title: 'heap per live delegation',
    unit: 'KB',
    goal: 20,
    measure: heapPerLiveDelegation,
  },
  heapLeft: {
    title: 'heap left by a run, over 10,000 runs',
    unit: 'bytes',
    goal: 100,
    measure: () => withHarness({}, heapLeft),
  },
  stored: {
    title: 'one delegation, sequential, sessions stored',
    unit: 'µs',
    goal: 300,
    measure: stored,
  },
  spawnLate: {
    title: 'one delegation in a parent of 5,000 turns',
    unit: 'ms',
    goal: 0.3,
    measure: () => late('spawn', 5000),
  },
  forkLate: {
    title: 'the same by fork',
    unit: 'ms',
    goal: 10,
    measure: () => late('fork', 5000),
  },
  forkStart10: {
    title: 'start of a fork, parent of 10 turns',
    unit: 'µs',
    measure: () => forkStart(10),
  },
  forkStart1000: {
    title: 'start of a fork, parent of 1,000 turns',
    unit: 'µs',
    measure: () => forkStart(1000),
  },
  forkStart10000: {
    title: 'start of a fork, parent of 10,000 turns',
    unit: 'µs',
    measure: () => forkStart(10_000),
  },
  turnEarly: { title: 'a turn, early in a session', unit: 'µs', measure: () => turnAfter(100) },
  turnLate: {
    title: 'a turn, after 10,000 others',
    unit: 'µs',
    measure: () => turnAfter(10_000),
  },
}

async function withHarness(
  options: HarnessOptions,
  measure: (harness: Harness) => Promise<number>,
): Promise<number> {
  const harness = await createHarness(options)
  try {
    return await measure(harness)
  } finally {
    await harness.dispose()
  }
}

/** Sends a task to a fresh parent, and disposes it. */
async function once(harness: Harness, task: string): Promise<void> {
  const { agent, dispose } = harness.parent()
  const { reason } = await agent.send(task)
  if (reason !== 'completed') throw new Error(`the turn ended as ${reason}`)
  await dispose()
}

async function perDelegation(options: HarnessOptions, count: number): Promise<number> {
  return withHarness(options, async (harness) => {
    for (let run = 0; run < count; run += 1) await once(harness, delegate(1))
    return (
      (await timed(async () => {
        for (let run = 0; run < count; run += 1) await once(harness, delegate(1))
      })) / count
    )
  })
}

async function parallelParents(harness: Harness): Promise<number> {
  const all = async (): Promise<void> => {
    await Promise.all(Array.from({ length: 200 }, () => once(harness, delegate(1))))
  }
  for (let run = 0; run < 10; run += 1) await all()
  return (await timed(all)) / 200
}

async function fanOut(harness: Harness): Promise<number> {
  for (let run = 0; run < 40; run += 1) await once(harness, delegate(50))
  return (await timed(() => once(harness, delegate(50)))) / 50
}

async function streamed(harness: Harness): Promise<number> {
  let updates = 0
  harness.ctx.on('subagent/update', () => {
    updates += 1
  })
  for (let run = 0; run < 500; run += 1) await once(harness, delegate(1))
  const count = 500
  const time = await timed(async () => {
    for (let run = 0; run < count; run += 1) await once(harness, delegate(1))
  })
  if (updates === 0) throw new Error('the listener heard nothing')
  return time / count
}

async function heapPerLiveDelegation(): Promise<number> {
  const { promise: until, resolve: release } = Promise.withResolvers<void>()
  return withHarness({ until }, async (harness) => {
    const count = 500
    const before = heapUsed()
    const handles: AgentHandle[] = []
    const ends = Array.from({ length: count }, () => {
      const handle = harness.parent()
      handles.push(handle)
      return handle.agent.send(delegate(1))
    })
    while (harness.ctx.subagents.runs().length < count) await new Promise(setImmediate)
    const used = heapUsed() - before
    release()
    await Promise.all(ends)
    await Promise.all(handles.map((handle) => handle.dispose()))
    return used / count / 1024
  })
}

async function heapLeft(harness: Harness): Promise<number> {
  for (let run = 0; run < 2000; run += 1) await once(harness, delegate(1))
  const before = heapUsed()
  const count = 10_000
  for (let run = 0; run < count; run += 1) await once(harness, delegate(1))
  return (heapUsed() - before) / count
}

async function stored(): Promise<number> {
  const root = await mkdtemp(join(tmpdir(), 'dsh-bench-'))
  try {
    return await perDelegation({ root }, 1000)
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

/** A parent with that many turns behind it. */
async function grown(harness: Harness, turns: number): Promise<AgentHandle> {
  const handle = harness.parent()
  for (let turn = 0; turn < turns; turn += 1) await handle.agent.send('hello')
  return handle
}

async function late(provider: 'spawn' | 'fork', turns: number): Promise<number> {
  return withHarness({ provider }, async (harness) => {
    for (let run = 0; run < 200; run += 1) await once(harness, delegate(1))
    const { agent, dispose } = await grown(harness, turns)
    await agent.send(delegate(1))
    const count = 10
    const time = await timed(async () => {
      for (let run = 0; run < count; run += 1) await agent.send(delegate(1))
    })
    await dispose()
    return time / count / 1000
  })
}

/** Only `start`, which is synchronous. */
async function forkStart(turns: number): Promise<number> {
  return withHarness({ provider: 'fork' }, async (harness) => {
    const { agent, dispose } = await grown(harness, turns)
    const { ctx } = harness
    const request = { prompt: 'do the work', parent: agent }
    const count = 200
    let total = 0
    for (let run = 0; run < count * 2; run += 1) {
      const begin = performance.now()
      const started = ctx.subagents.start('fork', request)
      if (run >= count) total += performance.now() - begin
      started.cancel()
      await started.dispose()
    }
    await dispose()
    return (total / count) * 1000
  })
}

async function turnAfter(turns: number): Promise<number> {
  return withHarness({}, async (harness) => {
    const warm = await grown(harness, 2000)
    await warm.dispose()
    const { agent, dispose } = await grown(harness, turns)
    const count = 200
    const time = await timed(async () => {
      for (let run = 0; run < count; run += 1) await agent.send('hello')
    })
    await dispose()
    return time / count
  })
}

/** In µs. */
async function timed(work: () => Promise<void>): Promise<number> {
  const begin = performance.now()
  await work()
  return (performance.now() - begin) * 1000
}

function heapUsed(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
