/** Agents that wait for a run: their processes are started, and their hands shaken, ahead of time. */
import { messageOf } from '@deepseek-ai/dsh-llm'
import type { PoolLimits } from './config.ts'
import type { Conversation } from './conversation.ts'

/** How long after a run has begun the next agent is started, in ms: the start would hold the run up. */
const refillMs = 100
/** How long after the first death of a waiting agent another is started, in ms; doubles each time. */
const firstRetryMs = 1000

export interface AgentPoolOptions extends PoolLimits {
  /** Starts an agent whose process works in `cwd`. */
  readonly start: (cwd: string) => Conversation
  readonly warn: (message: string) => void
}

interface Waiting {
  readonly agent: Conversation
  readonly cwd: string
  readonly timer: NodeJS.Timeout
}

/**
 * Keeps agents ready, each for one run; whoever takes one ends it. Only a run makes it start more:
 * a host that delegates nothing ends up with none.
 */
export class AgentPool {
  private readonly options: AgentPoolOptions
  private readonly waiting = new Set<Waiting>()
  private readonly endings = new Set<Promise<void>>()
  /** Deaths since an agent was last taken. */
  private deaths = 0
  private timer: NodeJS.Timeout | undefined
  private isDisposed = false

  constructor(options: AgentPoolOptions) {
    this.options = options
  }

  /** The agent that has waited longest in this folder: a process cannot be moved into another. */
  take(cwd: string): Conversation | undefined {
    for (const waiting of this.waiting) {
      if (waiting.cwd !== cwd) continue
      this.remove(waiting)
      this.deaths = 0
      return waiting.agent
    }
    return undefined
  }

  /** Starts what is missing, in this folder. */
  fill(cwd: string): void {
    if (this.isDisposed) return
    while (this.waiting.size < this.options.warm) this.add(cwd)
  }

  /** The same for a run that has just begun. While agents die, it is left to the next attempt. */
  refill(cwd: string): void {
    this.fillIn(refillMs, cwd)
  }

  /** Ends all that wait, and settles when they are gone. */
  async dispose(): Promise<void> {
    this.isDisposed = true
    clearTimeout(this.timer)
    for (const waiting of this.waiting) this.end(waiting)
    await Promise.all(this.endings)
  }

  private add(cwd: string): void {
    const { idleMs, start } = this.options
    const agent = start(cwd)
    const timer = setTimeout(() => this.end(waiting), idleMs).unref()
    const waiting: Waiting = { agent, cwd, timer }
    this.waiting.add(waiting)
    void this.watch(waiting)
  }

  private async watch(waiting: Waiting): Promise<void> {
    const { process } = waiting.agent
    const reason = await waiting.agent
      .initialize()
      .then(() => process.ended.then(() => 'it ended while it waited for a run'), messageOf)
    if (!this.waiting.has(waiting)) return
    this.end(waiting)
    this.options.warn(`an agent that was started ahead is lost: ${process.describe(reason)}`)
    this.retryLater(waiting.cwd)
  }

  /** What cannot live is tried less and less often, and given up when a live one would have been ended. */
  private retryLater(cwd: string): void {
    if (this.timer !== undefined) return
    const delayMs = firstRetryMs * 2 ** this.deaths
    this.deaths += 1
    if (delayMs <= this.options.idleMs) this.fillIn(delayMs, cwd)
  }

  private fillIn(delayMs: number, cwd: string): void {
    if (this.isDisposed) return
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      this.fill(cwd)
    }, delayMs).unref()
  }

  private remove(waiting: Waiting): void {
    clearTimeout(waiting.timer)
    this.waiting.delete(waiting)
  }

  private end(waiting: Waiting): void {
    this.remove(waiting)
    const ending = waiting.agent
      .stop()
      .catch((error: unknown) => this.options.warn(messageOf(error)))
      .finally(() => this.endings.delete(ending))
    this.endings.add(ending)
  }
}
