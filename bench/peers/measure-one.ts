/** Measures one adapter in a process of its own, and prints its samples as JSON: `measure-one.ts NAME`. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { heapUsed, type Sample, scaled, timed } from '../src/measure.ts'
import { type Adapter, closing, type Peer, type PeerOptions } from './peer.ts'

const quiet: PeerOptions = { deltas: 1, onDelta: () => {} }
/** How long each scenario warms up, and how long it is measured, in ms. */
const spanMs = 600
const liveCount = 100
const pastTurns = 5000

const [name = ''] = process.argv.slice(2)
const { adapter } = (await import(`./adapters/${name}.ts`)) as { readonly adapter: Adapter }
process.stdout.write(`${JSON.stringify(await measureAll(adapter))}\n`)
process.exit()

async function measureAll(harness: Adapter): Promise<Record<string, Sample>> {
  const peer = await harness.create(quiet)
  return {
    sequential: await forAWhile(() => delegate(peer, 1)),
    parallel: scaled(
      await forAWhile(() => Promise.all(Array.from({ length: 200 }, () => delegate(peer, 1)))),
      1 / 200,
    ),
    fanOut: scaled(await forAWhile(() => delegate(peer, 50)), 1 / 50),
    ...(harness.withoutDeltas === undefined && { deltas: await streamed(harness) }),
    heapLive: await heapPerLiveDelegation(harness),
    ...(await late(peer)),
  }
}

async function delegate(peer: Peer, calls: number): Promise<void> {
  check(await peer.delegate(calls))
}

function check(text: string): void {
  if (text !== closing) throw new Error(`the parent closed with "${text}"`)
}

/** In ms, with 5,000 turns behind the parent. */
async function late(peer: Peer): Promise<Record<string, Sample>> {
  const { spawn, fork } = await peer.grow(pastTurns)
  return {
    late: await oneInMs(spawn),
    ...(fork !== undefined && { lateFork: await oneInMs(fork) }),
  }
}

async function oneInMs(ask: () => Promise<string>): Promise<Sample> {
  return scaled(await forAWhile(async () => check(await ask())), 1 / 1000)
}

async function streamed(harness: Adapter): Promise<Sample> {
  let heard = 0
  let runs = 0
  const onDelta = (): void => {
    heard += 1
  }
  const peer = await harness.create({ deltas: 200, onDelta })
  const sample = await forAWhile(async () => {
    runs += 1
    await delegate(peer, 1)
  })
  if (heard < runs * 200) throw new Error(`the listener heard ${heard} deltas of ${runs} runs`)
  return sample
}

/** In KB, while all children wait for their model. */
async function heapPerLiveDelegation(harness: Adapter): Promise<Sample> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const waiting: Promise<void>[] = []
  const until = (): Promise<void> => {
    waiting.push(promise)
    return promise
  }
  const peer = await harness.create({ ...quiet, until })
  const runs: Promise<void>[] = []
  const start = async (count: number): Promise<void> => {
    while (runs.length < count) runs.push(delegate(peer, 1))
    while (waiting.length < runs.length) await nextTurn()
  }
  // The first ones also pay for the code.
  await start(20)
  const before = heapUsed()
  await start(20 + liveCount)
  const value = (heapUsed() - before) / liveCount / 1024
  resolve()
  await Promise.all(runs)
  return { value }
}

async function forAWhile(work: () => Promise<unknown>): Promise<Sample> {
  const end = performance.now() + spanMs
  let rounds = 0
  for (; rounds < 1 || performance.now() < end; rounds += 1) await work()
  return timed(rounds, work)
}
