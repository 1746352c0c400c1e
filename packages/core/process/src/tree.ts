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
  /** Whether the last look saw nothing at all. */
  private isBlind = false

  constructor({ pid, mark, table = machineTable }: TreeOptions) {
    this.pid = pid
    this.mark = mark
    this.table = table
    this.bornAt = table.bornAt(pid)
  }

  /** Finds the live members, and remembers them; none while the table cannot be read. */
  async look(): Promise<ProcessEntry[]> {
    try {
      const entries = await this.table.read()
      this.isBlind = false
      return this.membersOf(entries)
    } catch {
      // No file could be opened, or no process started, at this moment.
      this.isBlind = true
      return []
    }
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
      const members = await this.look()
      const isEmpty = members.length === 0
      if (isEmpty && this.isRootGone && !this.isBlind) return []
      if (performance.now() >= end) return isEmpty ? [this.pid] : members.map(({ pid }) => pid)
      this.killAll(members)
      await delay(pauseMs)
    }
  }

  /** Kills what can be found without waiting. */
  killNow(): void {
    try {
      // A member may start another one before it dies.
      for (let round = 0; round < 3; round += 1) this.killAll(this.membersOf(this.table.readNow()))
    } catch {
      // The table could not be read: the group is all that is known.
      this.signalGroup('SIGKILL')
    }
  }

  /** Asks every member to end. */
  async terminate(): Promise<void> {
    const members = await this.look()
    this.signalGroup('SIGTERM')
    for (const { pid, group } of members) {
      if (group !== this.pid || this.isRootGone) send(pid, 'SIGTERM')
    }
  }

  /** Signals the root's group while the root holds its number. */
  signalGroup(signal: NodeJS.Signals): void {
    if (!this.isRootGone) send(-this.pid, signal)
  }

  private killAll(members: readonly ProcessEntry[]): void {
    this.signalGroup('SIGKILL')
    for (const { pid } of members) send(pid, 'SIGKILL')
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
