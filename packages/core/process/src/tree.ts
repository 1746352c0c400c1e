/** A process and everything that came of it, found again after it left its group or its parent. */
import { setTimeout as delay } from 'node:timers/promises'
import { machineTable, type ProcessEntry, type ProcessTable } from './table.ts'

export interface TreeOptions {
  /** The pid of the root, which leads its own process group. */
  readonly pid: number
  /** A text that only this tree has in its environment. */
  readonly mark: string
  readonly table?: ProcessTable
}

/** The tree under one root process. */
export class ProcessTree {
  /** Set when the exit of the root is proven: from then on its pid may be anybody's. */
  isRootGone = false
  private readonly pid: number
  private readonly mark: string
  private readonly table: ProcessTable
  private readonly bornAt: number
  /** Members as last seen, pid to birth: they stay members when their parents die. */
  private known = new Map<number, number>()

  constructor({ pid, mark, table = machineTable }: TreeOptions) {
    this.pid = pid
    this.mark = mark
    this.table = table
    this.bornAt = table.bornAt(pid)
  }

  /** Finds the live members, and remembers them. */
  async look(): Promise<ProcessEntry[]> {
    return this.membersOf(await this.table.read())
  }

  /** Waits until no member is left, at most `ms`. */
  async isGoneWithin(ms: number): Promise<boolean> {
    const end = performance.now() + ms
    for (let pauseMs = 5; (await this.look()).length > 0; pauseMs = Math.min(50, pauseMs * 2)) {
      if (performance.now() >= end) return false
      await delay(pauseMs)
    }
    return true
  }

  /** Kills members until none is left, for at most `ms`. @returns the pids of those that are left. */
  async kill(ms: number): Promise<number[]> {
    const end = performance.now() + ms
    for (let pauseMs = 1; ; pauseMs = Math.min(50, pauseMs * 2)) {
      const left = (await this.look()).map(({ pid }) => pid)
      // A root that is dead and not yet collected shows nowhere else.
      if (left.length === 0 && !this.isRootGone) left.push(this.pid)
      if (left.length === 0 || performance.now() >= end) return left
      this.killAll(left)
      await delay(pauseMs)
    }
  }

  /** Kills what can be found without waiting. */
  killNow(): void {
    // A member may start another one before it dies.
    for (let round = 0; round < 3; round += 1) {
      this.killAll(this.membersOf(this.table.readNow()).map(({ pid }) => pid))
    }
  }

  /** Signals the root's group while the root holds its number. */
  signalGroup(signal: NodeJS.Signals): void {
    if (!this.isRootGone) send(-this.pid, signal)
  }

  private killAll(pids: readonly number[]): void {
    this.signalGroup('SIGKILL')
    for (const pid of pids) send(pid, 'SIGKILL')
  }

  private membersOf(entries: readonly ProcessEntry[]): ProcessEntry[] {
    const candidates = entries.filter(
      ({ pid, bornAt, isZombie }) => !isZombie && pid !== process.pid && bornAt >= this.bornAt,
    )
    const isReused = this.isRootGone && entries.some(({ pid }) => pid === this.pid)
    const members = new Map<number, ProcessEntry>()
    for (const entry of candidates) {
      if (this.isMember(entry, isReused)) members.set(entry.pid, entry)
    }
    addDescendants(members, candidates)
    this.known = new Map(Array.from(members.values(), ({ pid, bornAt }) => [pid, bornAt]))
    return [...members.values()]
  }

  /** `isReused` tells that the root's number belongs to a stranger, whose group is not ours. */
  private isMember(entry: ProcessEntry, isReused: boolean): boolean {
    if (this.known.get(entry.pid) === entry.bornAt) return true
    if (entry.group === this.pid && !isReused) return true
    return entry.carries(this.mark)
  }
}

function addDescendants(
  members: Map<number, ProcessEntry>,
  candidates: readonly ProcessEntry[],
): void {
  const children = Map.groupBy(candidates, ({ parent }) => parent)
  // A map visits what is added while it is walked.
  for (const pid of members.keys()) {
    for (const child of children.get(pid) ?? []) members.set(child.pid, child)
  }
}

function send(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal)
  } catch {
    // It is gone, or belongs to another user: the next look tells.
  }
}
