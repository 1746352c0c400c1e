/** What is measured within one process: delegations, turns and forks. */
import { existsSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentHandle } from '@deepseek-ai/dsh-agent'
import { createHarness, delegate, type Harness, type HarnessOptions } from './harness.ts'
import { heapUsed, median, ratio, type Sample, scaled, timed } from './measure.ts'

export async function withHarness<T>(
  options: HarnessOptions,
  measure: (harness: Harness) => Promise<T>,
): Promise<T> {
  const harness = await createHarness(options)
  try {
    return await measure(harness)
  } finally {
    await harness.dispose()
  }
}

/** Sends a task to a fresh parent, and disposes it. */
async function once(harness: Harness, task = delegate(1)): Promise<void> {
  const { agent, dispose } = harness.parent()
  const { reason } = await agent.send(task)
  if (reason !== 'completed') throw new Error(`the turn ended as ${reason}`)
  await dispose()
}

export async function sequential(harness: Harness): Promise<Sample> {
  await timed(2000, () => once(harness))
  return timed(2000, () => once(harness))
}

export async function parallel(harness: Harness): Promise<Sample> {
  const all = (): Promise<unknown> => Promise.all(Array.from({ length: 200 }, () => once(harness)))
  // Young memory has found its size, and the code its form, after some seconds.
  await timed(50, all)
  return scaled(await timed(20, all), 1 / 200)
}

export async function fanOut(harness: Harness): Promise<Sample> {
  await timed(150, () => once(harness, delegate(50)))
  return scaled(await timed(100, () => once(harness, delegate(50))), 1 / 50)
}

/** With a listener that hears what children do. */
export async function deltas(harness: Harness): Promise<Sample> {
  let updates = 0
  harness.ctx.on('subagent/update', () => {
    updates += 1
  })
  await timed(500, () => once(harness))
  const sample = await timed(500, () => once(harness))
  if (updates === 0) throw new Error('the listener heard nothing')
  return sample
}

/** In KB: parent, child, both logs and all that waits between them. */
export async function heapPerLiveDelegation(): Promise<Sample> {
  const { promise: until, resolve: release } = Promise.withResolvers<void>()
  return withHarness({ until: () => until }, async (harness) => {
    const handles: AgentHandle[] = []
    const ends: Promise<unknown>[] = []
    const start = async (count: number): Promise<void> => {
      const wanted = handles.length + count
      while (handles.length < wanted) {
        const handle = harness.parent()
        handles.push(handle)
        ends.push(handle.agent.send(delegate(1)))
      }
      while (harness.ctx.subagents.runs().length < wanted) await new Promise(setImmediate)
    }
    // The first ones also pay for the code.
    await start(50)
    const before = heapUsed()
    await start(500)
    const value = (heapUsed() - before) / 500 / 1024
    release()
    await Promise.all(ends)
    await Promise.all(handles.map((handle) => handle.dispose()))
    return { value }
  })
}

/** In bytes a run. */
export async function heapLeft(harness: Harness): Promise<Sample> {
  await timed(2000, () => once(harness))
  const before = heapUsed()
  await timed(10_000, () => once(harness))
  return { value: (heapUsed() - before) / 10_000 }
}

/** How much more a delegation costs when the sessions are stored, its parts in µs. */
export async function stored(): Promise<Sample> {
  const root = await mkdtemp(join(memoryFolder(), 'dsh-bench-'))
  try {
    return await withHarness({}, (without) =>
      withHarness({ root }, async (kept) => {
        await ratio(10, fiftyOf(without), fiftyOf(kept))
        const { ratio: value, first, second } = await ratio(15, fiftyOf(without), fiftyOf(kept))
        const parts = {
          'off, CPU': first.cpu ?? 0,
          'on, CPU': second.cpu ?? 0,
          'off, wall': first.value,
          'on, wall': second.value,
          'two bare files, wall': bareFiles(root),
        }
        return { value, parts }
      }),
    )
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

/**
 * A disk would be measured with what it did before: ext4 looks through the inodes that were freed
 * lately before it makes a file, so that each repetition would pay for the clean-up of the last.
 */
function memoryFolder(): string {
  const shared = '/dev/shm'
  return existsSync(shared) ? shared : tmpdir()
}

/** What the file system takes for a file of each of two sessions, in µs. */
function bareFiles(root: string): number {
  const count = 500
  const data = 'x'.repeat(1000)
  const begin = performance.now()
  for (let index = 0; index < count * 2; index += 1) {
    writeFileSync(join(root, `bare-${index}`), data)
  }
  return ((performance.now() - begin) * 1000) / count
}

/** A parent with that many turns behind it. */
async function grown(harness: Harness, turns: number): Promise<AgentHandle> {
  const handle = harness.parent()
  for (let turn = 0; turn < turns; turn += 1) await handle.agent.send('hello')
  return handle
}

/** One delegation in ms, in a parent of 5,000 turns. */
export async function late(harness: Harness): Promise<Sample> {
  await timed(300, () => once(harness))
  const { agent, dispose } = await grown(harness, 5000)
  await timed(3, () => agent.send(delegate(1)))
  const sample = scaled(await timed(15, () => agent.send(delegate(1))), 1 / 1000)
  await dispose()
  return sample
}

/** How much longer the start of a fork takes from a long parent than from a short one, parts in µs. */
export async function forkStart(harness: Harness): Promise<Sample> {
  const lengths = [10, 1000, 10_000]
  const parents: AgentHandle[] = []
  for (const turns of lengths) parents.push(await grown(harness, turns))
  const times = lengths.map((): number[] => [])
  for (let round = 0; round < 300; round += 1) {
    for (const [index, { agent }] of parents.entries()) {
      const begin = performance.now()
      const run = harness.ctx.subagents.start('fork', { prompt: 'do the work', parent: agent })
      if (round >= 100) times[index]?.push((performance.now() - begin) * 1000)
      run.cancel()
      await run.dispose()
    }
  }
  await Promise.all(parents.map((parent) => parent.dispose()))
  const medians = times.map(median)
  const parts = Object.fromEntries(
    lengths.map((turns, index) => [`${turns} turns`, medians[index] ?? 0]),
  )
  return { value: Math.max(...medians) / Math.min(...medians), parts }
}

/** How much more a turn costs after 10,000 others, parts in µs. */
export async function turnRatio(harness: Harness): Promise<Sample> {
  await (await grown(harness, 2000)).dispose()
  const long = await grown(harness, 10_000)
  const short = async (): Promise<Sample> => {
    const handle = await grown(harness, 10)
    const sample = await fiftyTurns(handle)
    await handle.dispose()
    return sample
  }
  const { ratio: value, first, second } = await ratio(15, short, () => fiftyTurns(long))
  await long.dispose()
  return { value, parts: { 'early, CPU': first.cpu ?? 0, 'late, CPU': second.cpu ?? 0 } }
}

function fiftyTurns({ agent }: AgentHandle): Promise<Sample> {
  return timed(50, () => agent.send('hello'))
}

function fiftyOf(harness: Harness): () => Promise<Sample> {
  return () => timed(50, () => once(harness))
}
