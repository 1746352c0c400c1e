/** Passes on the life of one run, at a pace that costs its parent nothing. */
import type { SubagentActivity, SubagentRunId, SubagentUpdate } from './types.ts'

/** Text is gathered for this long before it is passed on, in ms. */
const paceMs = 50

/** Gathers text deltas, keeps the order of everything else. */
export class UpdateFeed {
  private readonly runId: SubagentRunId
  private readonly emit: (update: SubagentUpdate) => void
  private kind: 'text' | 'reasoning' = 'text'
  private text = ''
  private lastAt = 0
  private timer: NodeJS.Timeout | undefined

  constructor(runId: SubagentRunId, emit: (update: SubagentUpdate) => void) {
    this.runId = runId
    this.emit = emit
  }

  push(activity: SubagentActivity, now: number): void {
    if (activity.kind !== 'text' && activity.kind !== 'reasoning') {
      this.flush(now)
      this.emit({ runId: this.runId, ...activity })
      return
    }
    // It shows life and says nothing.
    if (activity.text === '') return
    if (activity.kind !== this.kind) this.flush(now)
    this.kind = activity.kind
    this.text += activity.text
    const dueInMs = this.lastAt + paceMs - now
    if (dueInMs <= 0) this.flush(now)
    else this.timer ??= setTimeout(() => this.flush(performance.now()), dueInMs)
  }

  /** Passes on what was gathered; also the end of the feed. */
  flush(now: number): void {
    clearTimeout(this.timer)
    this.timer = undefined
    if (this.text === '') return
    const { runId, kind, text } = this
    this.text = ''
    this.lastAt = now
    this.emit({ runId, kind, text })
  }
}
