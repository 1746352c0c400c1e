/** One supervised run: it ends once, for a true reason, whatever its provider does. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import { addUsage, messageOf, noUsage, type Usage, within } from '@deepseek-ai/dsh-llm'
import { freezeJson, type SessionId } from '@deepseek-ai/dsh-session'
import type {
  SubagentActivity,
  SubagentProvider,
  SubagentResult,
  SubagentRun,
  SubagentRunId,
  SubagentRunInfo,
  SubagentRunState,
  SubagentStartRequest,
} from './types.ts'
import type { UpdateFeed } from './updates.ts'

const maxDiagnosticBytes = 4096
/** How long a cancelled provider may take to hand in what the child had, in ms. */
const cancelGraceMs = 50

/** What a run tells of itself to the table that holds it. */
export interface RunObserver {
  started(run: SupervisedRun): void
  settled(run: SupervisedRun, result: SubagentResult): void
  /** A provider broke the rule that this step cannot fail. */
  failed(run: SupervisedRun, step: 'cancel' | 'dispose', error: unknown): void
}

export interface RunSpec {
  readonly runId: SubagentRunId
  readonly childId: SessionId
  readonly provider: SubagentProvider
  readonly request: SubagentStartRequest
  readonly depth: number
  readonly feed: UpdateFeed
  readonly observer: RunObserver
  /** How long a provider may take to dispose its run, in ms. */
  readonly disposeTimeoutMs: number
}

/** Wraps the run of a provider with the cares that are the same for all of them. */
export class SupervisedRun implements SubagentRun {
  readonly id: SessionId
  readonly result: Promise<SubagentResult>
  // Only declared: where the provider has none, the run has no such member.
  declare sendMessage?: (text: string) => Promise<void>
  declare resume?: (prompt: string) => Promise<SubagentResult>
  /** Live runs that the child itself has started. */
  readonly children = new Set<SupervisedRun>()
  /** The run whose child has started this one. */
  owner: SupervisedRun | undefined
  readonly startedAt = Date.now()
  /** Whether the provider was asked. */
  isBegun = false
  private readonly spec: RunSpec
  private readonly resolve: (result: SubagentResult) => void
  private inner: SubagentRun | undefined
  private isSettled = false
  private isCancelled = false
  private cancelReason: string | undefined
  private disposal: Promise<void> | undefined
  private lastActivityAt = 0
  /** What the child did before the start was announced. */
  private early: SubagentActivity[] | undefined = []
  private readonly timers = new Set<NodeJS.Timeout>()
  private readonly undo: (() => void)[] = []
  private ownUsage: Usage = noUsage
  /** Tokens of descendants whose runs have ended. */
  private endedUsage: Usage = noUsage

  constructor(spec: RunSpec) {
    this.spec = spec
    this.id = spec.childId
    const { promise, resolve } = Promise.withResolvers<SubagentResult>()
    this.result = promise
    this.resolve = resolve
    const { signal, parent } = spec.request
    if (signal?.aborted === true) {
      this.cancel(reasonOf(signal))
      return
    }
    // First, because it refuses a parent that is gone.
    const untie = parent.onDispose(() => this.dispose())
    const onAbort = (): void => this.cancel(signal && reasonOf(signal))
    signal?.addEventListener('abort', onAbort, { once: true })
    this.undo.push(() => signal?.removeEventListener('abort', onAbort), untie)
  }

  get parent(): Agent {
    return this.spec.request.parent
  }

  get isOver(): boolean {
    return this.isSettled
  }

  /** Whether there is, or was, a child. */
  get isStarted(): boolean {
    return this.inner !== undefined
  }

  get info(): SubagentRunInfo {
    const { runId, childId: id, provider, request } = this.spec
    const { parent, label } = request
    return { runId, provider: provider.name, id, parent, ...(label !== undefined && { label }) }
  }

  get state(): SubagentRunState {
    const { parent, ...info } = this.info
    const { startedAt, usage } = this
    return { ...info, parentId: parent.id, depth: this.spec.depth, startedAt, usage }
  }

  /** Tokens of the child and all its descendants so far. */
  get usage(): Usage {
    let usage = addUsage(this.ownUsage, this.endedUsage)
    for (const child of this.children) usage = addUsage(usage, child.usage)
    return usage
  }

  /** Takes over what a run of the child has used in the end; whether it was one. */
  childEnded(child: SupervisedRun): boolean {
    const isOurs = this.children.delete(child)
    if (isOurs) this.endedUsage = addUsage(this.endedUsage, child.usage)
    return isOurs
  }

  /** Starts the child. @throws what the provider throws; the run is then over, with nothing behind it. */
  begin(): void {
    const { runId, childId, depth, provider, request, observer } = this.spec
    this.isBegun = true
    this.touch(performance.now())
    const report = (activity: SubagentActivity): void => this.report(activity)
    try {
      this.adopt(provider.start(request, { runId, childId, depth, report }))
    } catch (error) {
      this.settle({ output: [], stopReason: 'error', diagnostic: messageOf(error) })
      this.untie()
      throw error
    }
    if (this.isCancelled) this.cancelInner()
    observer.started(this)
    const { early = [] } = this
    this.early = undefined
    for (const activity of early) this.report(activity)
    this.watch()
  }

  /** Takes note of life in the child. What comes after the end is ignored. */
  report(activity: SubagentActivity): void {
    if (this.isSettled) return
    if (this.early !== undefined) {
      this.early.push(activity)
      return
    }
    const now = performance.now()
    this.touch(now)
    if (activity.kind === 'usage') this.ownUsage = activity.usage
    this.spec.feed.push(activity, now)
  }

  cancel(reason?: string): void {
    if (this.isCancelled || this.isSettled) return
    this.isCancelled = true
    this.cancelReason = reason
    for (const child of this.children) child.cancel(reason)
    if (!this.isBegun) this.settle({ output: [], stopReason: 'aborted' })
    else if (this.isStarted) this.cancelInner()
    // Else the start is under way, and hands the cancel on.
  }

  private cancelInner(): void {
    try {
      this.inner?.cancel(this.cancelReason)
    } catch (error) {
      this.spec.observer.failed(this, 'cancel', error)
    }
    // A provider that keeps the rules hands in the partial output by itself, before this.
    this.after(cancelGraceMs, () => this.settle({ output: [], stopReason: 'aborted' }))
  }

  dispose(): Promise<void> {
    this.disposal ??= this.disposeOnce()
    return this.disposal
  }

  private async disposeOnce(): Promise<void> {
    this.cancel('the run was disposed')
    // A start that is under way gives the child to dispose.
    if (!this.isStarted) await this.result
    if (this.inner !== undefined) await this.disposeInner(this.inner)
    await this.result
    this.untie()
  }

  /** A provider that never lets go must not hold whoever waits for its child. */
  private async disposeInner(inner: SubagentRun): Promise<void> {
    const { disposeTimeoutMs, observer } = this.spec
    const fail = (error: unknown): void => observer.failed(this, 'dispose', error)
    if (await within(disposeTimeoutMs, disposalOf(inner).catch(fail))) return
    fail(new Error(`it was not gone after ${disposeTimeoutMs} ms, and is left behind`))
  }

  private adopt(inner: SubagentRun): void {
    const { provider } = this.spec
    if (inner.sendMessage !== undefined) this.sendMessage = inner.sendMessage.bind(inner)
    if (inner.resume !== undefined) this.resume = inner.resume.bind(inner)
    inner.result.then(
      (result) => this.settle(result),
      (error: unknown) => this.settle(faultOf(provider, error)),
    )
    this.inner = inner
  }

  /** Moves the idle limit: also of whoever waits for the child, for that one is alive too. */
  touch(now: number): void {
    this.lastActivityAt = now
    this.owner?.touch(now)
  }

  private untie(): void {
    for (const undo of this.undo.splice(0)) undo()
  }

  private watch(): void {
    const { timeoutMs, idleTimeoutMs } = this.spec.request
    if (timeoutMs !== undefined) {
      this.after(timeoutMs, () => this.cancel(`timeout: the run took longer than ${timeoutMs} ms`))
    }
    if (idleTimeoutMs !== undefined) this.watchIdle(idleTimeoutMs, idleTimeoutMs)
  }

  /** One timer for the whole run: life only moves a time stamp. */
  private watchIdle(idleTimeoutMs: number, delayMs: number): void {
    this.after(delayMs, () => {
      const leftMs = this.lastActivityAt + idleTimeoutMs - performance.now()
      if (leftMs > 0) this.watchIdle(idleTimeoutMs, leftMs)
      else this.cancel(`timeout: no sign of life for ${idleTimeoutMs} ms`)
    })
  }

  private after(delayMs: number, action: () => void): void {
    if (this.isSettled) return
    const timer = setTimeout(() => {
      this.timers.delete(timer)
      action()
    }, delayMs)
    this.timers.add(timer)
  }

  private settle(raw: SubagentResult): void {
    if (this.isSettled) return
    this.isSettled = true
    for (const timer of this.timers) clearTimeout(timer)
    this.timers.clear()
    this.undo.shift()?.()
    this.spec.feed.flush(performance.now())
    const result = this.complete(raw)
    this.spec.observer.settled(this, result)
    this.resolve(result)
  }

  private complete(raw: SubagentResult): SubagentResult {
    try {
      return this.resultOf(raw)
    } catch (error) {
      return this.resultOf(faultOf(this.spec.provider, error))
    }
  }

  private resultOf(raw: SubagentResult): SubagentResult {
    const { output, structured } = raw
    if (raw.usage !== undefined) this.ownUsage = raw.usage
    const stopReason = this.isCancelled ? 'aborted' : raw.stopReason
    const diagnostic = (this.isCancelled ? this.cancelReason : undefined) ?? raw.diagnostic
    const { usage } = this
    return {
      output: output && Object.isFrozen(output) ? output : freezeJson(output, 'output'),
      ...(structured !== undefined && stopReason === 'completed' && { structured }),
      stopReason,
      ...((raw.usage !== undefined || usage !== noUsage) && { usage }),
      ...(diagnostic !== undefined && { diagnostic: bounded(diagnostic) }),
    }
  }
}

/** A provider may throw where it should reject. */
async function disposalOf(inner: SubagentRun): Promise<void> {
  await inner.dispose()
}

function reasonOf({ reason }: AbortSignal): string | undefined {
  return typeof reason === 'string' ? reason : undefined
}

function faultOf(provider: SubagentProvider, error: unknown): SubagentResult {
  const diagnostic = `subagent provider "${provider.name}" failed: ${messageOf(error)}`
  return { output: [], stopReason: 'error', diagnostic }
}

function bounded(text: string): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= maxDiagnosticBytes) return text.toWellFormed()
  // A character that the cut has halved comes out as a replacement character.
  const head = bytes.toString('utf8', 0, maxDiagnosticBytes - 8)
  return `${head.replace(/\uFFFD+$/, '')}…`
}
