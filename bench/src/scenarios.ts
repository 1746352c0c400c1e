/** The scenarios: each gives one figure of the harness's own cost. */
import {
  deltas,
  fanOut,
  forkStart,
  heapLeft,
  heapPerLiveDelegation,
  late,
  parallel,
  sequential,
  stored,
  turnRatio,
  withHarness,
} from './in-process.ts'
import type { Sample } from './measure.ts'
import { acpOverhead, acpWarm, oneShot, ownAcpAgent, ready } from './processes.ts'

export interface Scenario {
  readonly title: string
  /** Of a process: starts of bare Node. The goals in ms were set where that takes 25. */
  readonly unit: 'µs' | 'ms' | 'KB' | 'bytes' | '×' | '× Node'
  /** What the figure should not exceed. */
  readonly goal: number
  /** Called several times, each time in a process of its own. */
  measure(): Promise<Sample>
}

/** By name, in the order in which they are run and shown. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  sequential: {
    title: 'one delegation, sequential',
    unit: 'µs',
    goal: 150,
    measure: () => withHarness({}, sequential),
  },
  parallel: {
    title: '200 parents in parallel, each',
    unit: 'µs',
    goal: 150,
    measure: () => withHarness({}, parallel),
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
    measure: () => withHarness({ deltas: 200 }, deltas),
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
    title: 'sessions stored in memory files, against not stored',
    unit: '×',
    goal: 2,
    measure: stored,
  },
  spawnLate: {
    title: 'one delegation in a parent of 5,000 turns',
    unit: 'ms',
    goal: 0.3,
    measure: () => withHarness({}, late),
  },
  forkLate: {
    title: 'the same by fork',
    unit: 'ms',
    goal: 10,
    measure: () => withHarness({ provider: 'fork' }, late),
  },
  forkStart: {
    title: 'start of a fork, 10 to 10,000 turns',
    unit: '×',
    goal: 2,
    measure: () => withHarness({ provider: 'fork' }, forkStart),
  },
  turn: {
    title: 'a turn after 10,000 others, against an early one',
    unit: '×',
    goal: 2,
    measure: () => withHarness({}, turnRatio),
  },
  ready: {
    title: 'dsh with the coding agent, to its prompt',
    unit: '× Node',
    goal: 10,
    measure: ready,
  },
  oneShot: {
    title: 'dsh -p with one delegation, to its exit',
    unit: '× Node',
    goal: 16,
    measure: oneShot,
  },
  ownAcp: {
    title: 'our ACP agent, from spawn to answer',
    unit: '× Node',
    goal: 4.4,
    measure: ownAcpAgent,
  },
  acpOverhead: {
    title: 'our ACP client over a bare one',
    unit: '× Node',
    goal: 0.4,
    measure: acpOverhead,
  },
  acpWarm: {
    title: 'our ACP client, an agent being ready, to the answer',
    unit: '× Node',
    goal: 0.6,
    measure: acpWarm,
  },
}
