/** The live runs of a context: who may start now, who waits, what the child's life tells. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { JsonValue, Notify } from '@deepseek-ai/dsh-llm'
import { randomId, type Session, type SessionEvent, type SessionId } from '@deepseek-ai/dsh-session'
import { SubagentError } from './errors.ts'
import { type RunObserver, SupervisedRun } from './run.ts'
import type {
  SubagentActivity,
  SubagentProvider,
  SubagentResult,
  SubagentRunId,
  SubagentRunState,
  SubagentStartRequest,
} from './types.ts'
import { UpdateFeed } from './updates.ts'

/** What the service holds every run to. */
export interface RunLimits {
  /** Runs that work at the same time; one that waits for children of its own does not count. */
  readonly maxConcurrent: number
  /** The same for the children of one parent, those that wait included. */
  readonly maxConcurrentPerParent: number
  /** Starts in one turn of one parent. */
  readonly maxPerTurn: number
  /** How long the disposal of a run waits for its provider, in ms. */
  readonly disposeTimeoutMs: number
}

const maxTitleLength = 60

/** Starts runs, in order, as the limits allow. */
export class RunTable implements RunObserver {
  private readonly live = new Map<SessionId, SupervisedRun>()
  private readonly waiting = new Set<SupervisedRun>()
  /** Started runs that do not wait for children of their own. */
  private working = 0
  private isBeginning = false
  private readonly startedByParent = new Map<Agent, number>()
  private readonly startsOfTurn = new WeakMap<Agent, { turn: number; count: number }>()
  private readonly limits: RunLimits
  private readonly notify: Notify
  private readonly warn: (message: string, error: unknown) => void

  constructor(limits: RunLimits, notify: Notify, warn: (message: string, error: unknown) => void) {
    this.limits = limits
    this.notify = notify
    this.warn = warn
  }

  /** The live runs, those that wait for a slot among them, oldest first. */
  list(): SubagentRunState[] {
    return Array.from(this.live.values(), (run) => run.state)
  }

  get(id: SessionId): SubagentRunState | undefined {
    return this.live.get(id)?.state
  }

  /** @throws SubagentError `TOO_MANY_RUNS`, and what the provider throws; nothing is left behind then. */
  start(provider: SubagentProvider, request: SubagentStartRequest, depth: number): SupervisedRun {
    this.checkTurn(request.parent)
    const runId = randomId() as SubagentRunId
    const feed = new UpdateFeed(runId, (update) => this.notify('subagent/update', update))
    const childId = randomId() as SessionId
    const { disposeTimeoutMs } = this.limits
    const run = new SupervisedRun({
      runId,
      childId,
      provider,
      request,
      depth,
      feed,
      observer: this,
      disposeTimeoutMs,
    })
    if (run.isOver) return run
    this.live.set(run.id, run)
    this.attach(run)
    if (this.hasRoomFor(run)) this.begin(run)
    else this.waiting.add(run)
    this.countStart(request.parent)
    return run
  }

  /** Cancels and disposes every run. */
  async disposeAll(): Promise<void> {
    await Promise.all(Array.from(this.live.values(), (run) => run.dispose()))
  }

  /** The text that an in-process child streams is a sign of its life. */
  onDelta(agentId: SessionId, kind: 'text' | 'reasoning', text: string): void {
    this.live.get(agentId)?.report({ kind, text })
  }

  /** So are the facts in its log. */
  onEvent(session: Session, event: SessionEvent): void {
    const run = this.live.get(session.id)
    if (run === undefined) return
    const activity = activityOf(session, event)
    if (activity !== undefined) run.report(activity)
  }

  /** So is a tool of the child that tells how far it is. */
  onProgress(agentId: SessionId): void {
    this.live.get(agentId)?.touch(performance.now())
  }

  started(run: SupervisedRun): void {
    this.notify('subagent/start', run.info)
  }

  settled(run: SupervisedRun, result: SubagentResult): void {
    this.live.delete(run.id)
    this.detach(run)
    if (!this.waiting.delete(run) && run.isBegun) {
      this.release(run)
      if (run.isStarted) this.announceEnd(run, result)
    }
    this.beginWaiting()
  }

  failed(run: SupervisedRun, step: 'cancel' | 'dispose', error: unknown): void {
    const { provider } = run.info
    this.warn(`subagent provider "${provider}" failed to ${step} run "${run.id}"`, error)
  }

  private begin(run: SupervisedRun): void {
    const { parent } = run
    this.working += 1
    this.startedByParent.set(parent, (this.startedByParent.get(parent) ?? 0) + 1)
    run.begin()
  }

  private release({ parent, children }: SupervisedRun): void {
    if (children.size === 0) this.working -= 1
    const left = (this.startedByParent.get(parent) ?? 0) - 1
    if (left > 0) this.startedByParent.set(parent, left)
    else this.startedByParent.delete(parent)
  }

  private beginWaiting(): void {
    // A start that fails settles its run, which comes back here: the loop goes on by itself.
    if (this.isBeginning) return
    this.isBeginning = true
    for (const run of this.waiting) {
      if (this.working >= this.limits.maxConcurrent) break
      if (!this.hasRoomFor(run)) continue
      this.waiting.delete(run)
      try {
        this.begin(run)
      } catch {
        // The caller has the run, and its result says what the provider threw.
      }
    }
    this.isBeginning = false
  }

  private hasRoomFor({ parent }: SupervisedRun): boolean {
    const { maxConcurrent, maxConcurrentPerParent } = this.limits
    const siblings = this.startedByParent.get(parent) ?? 0
    return this.working < maxConcurrent && siblings < maxConcurrentPerParent
  }

  /** A child that starts to wait for its own first child hands its slot on: no deadlock. */
  private attach(run: SupervisedRun): void {
    const parent = this.live.get(run.parent.id)
    if (parent === undefined) return
    if (parent.children.size === 0) this.working -= 1
    parent.children.add(run)
    run.owner = parent
  }

  private detach(run: SupervisedRun): void {
    const parent = this.live.get(run.parent.id)
    if (parent === undefined || !parent.childEnded(run)) return
    if (parent.children.size === 0) this.working += 1
  }

  private checkTurn(parent: Agent): void {
    const { maxPerTurn } = this.limits
    if (this.startsInTurn(parent) < maxPerTurn) return
    throw new SubagentError(
      'TOO_MANY_RUNS',
      `${maxPerTurn} children were started in this turn, which is maxPerTurn: do the rest without delegating, or in fewer, larger tasks`,
    )
  }

  private countStart(parent: Agent): void {
    if (parent.status === 'idle') return
    const turn = parent.session.turnCount
    this.startsOfTurn.set(parent, { turn, count: this.startsInTurn(parent) + 1 })
  }

  private startsInTurn(parent: Agent): number {
    // No model runs wild while the parent is idle: whoever starts children then is a program.
    if (parent.status === 'idle') return 0
    const known = this.startsOfTurn.get(parent)
    return known?.turn === parent.session.turnCount ? known.count : 0
  }

  private announceEnd(run: SupervisedRun, { stopReason, usage, output }: SubagentResult): void {
    this.notify('subagent/end', {
      ...run.info,
      stopReason,
      ...(usage !== undefined && { usage }),
      ...(output.length > 0 && { lastAssistantMessage: output }),
    })
  }
}

function activityOf(session: Session, event: SessionEvent): SubagentActivity | undefined {
  switch (event.type) {
    case 'tool/call': {
      const { callId, name, input } = event.data
      const title = titleOf(input)
      return { kind: 'tool-start', callId, name, ...(title !== undefined && { title }) }
    }
    case 'tool/result': {
      const { callId, name, isError } = event.data
      return { kind: 'tool-end', callId, name, isError }
    }
    case 'assistant/message':
      return { kind: 'usage', usage: session.usage }
    default:
      return undefined
  }
}

/** The first text among the arguments, in one short line. */
function titleOf(input: JsonValue): string | undefined {
  if (typeof input !== 'object' || input === null) return undefined
  const text = Object.values(input).find((value): value is string => typeof value === 'string')
  if (text === undefined) return undefined
  const line = text
    .slice(0, maxTitleLength * 4)
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim()
  const characters = Array.from(line)
  return characters.length <= maxTitleLength
    ? line
    : `${characters.slice(0, maxTitleLength - 1).join('')}…`
}
