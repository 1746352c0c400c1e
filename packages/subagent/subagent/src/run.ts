/** One supervised run: it ends once, for a true reason, whatever its provider does. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import { addUsage, messageOf, noUsage, type Usage } from '@deepseek-ai/dsh-llm'
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
}

/** Wraps the run of a provider with the cares that are the same for all of them. */
export class SupervisedRun implements SubagentRun {
  readonly id: SessionId
  readonly result: Promise<SubagentResult>
  sendMessage?: (text: string) => Promise<void>
  resume?: (prompt: string) => Promise<SubagentResult>
  /** Live runs that the child itself has started. */
  readonly children = new Set<SupervisedRun>()
  readonly startedAt = Date.now()
  private readonly spec: RunSpec
  private readonly resolve: (result: SubagentResult) => void
  private inner: SubagentRun | undefined
  private isSettled = false
  private isCancelled = false
  private cancelReason: string | undefined
  private disposal: Promise<void> | undefined
  private lastActivityAt = 0
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
    const onAbort = (): void => this.cancel(signal && reasonOf(signal))
    signal?.addEventListener('abort', onAbort, { once: true })
    this.undo.push(() => signal?.removeEventListener('abort', onAbort))
    this.undo.push(parent.onDispose(() => this.dispose()))
  }

  get parent(): Agent {
    return this.spec.request.parent
  }

  get isOver(): boolean {
    return this.isSettled
  }

  /** Whether the provider was asked. */
  get isBegun(): boolean {
    return this.lastActivityAt > 0
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

  /** Takes over what a run of the child has used in the end. */
  childEnded(child: SupervisedRun): void {
    if (this.children.delete(child)) this.endedUsage = addUsage(this.endedUsage, child.usage)
  }

  /** Starts the child. @throws what the provider throws; the run is then over, with nothing behind it. */
  begin(): void {
    const { runId, childId, depth, provider, request } = this.spec
    this.lastActivityAt = performance.now()
    const report = (activity: SubagentActivity): void => this.report(activity)
    try {
      this.inner = provider.start(request, { runId, childId, depth, report })
    } catch (error) {
      this.settle({ output: [], stopReason: 'error', diagnostic: messageOf(error) })
      this.untie()
      throw error
    }
    const { inner } = this
    this.sendMessage = inner.sendMessage?.bind(inner)
    this.resume = inner.resume?.bind(inner)
    inner.result.then(
      (result) => this.settle(result),
      (error: unknown) => this.settle(faultOf(provider, error)),
    )
    this.watch()
  }

  /** Takes note of life in the child. What comes after the end is ignored. */
  report(activity: SubagentActivity): void {
    if (this.isSettled) return
    const now = performance.now()
    this.lastActivityAt = now
    if (activity.kind === 'usage') this.ownUsage = activity.usage
    this.spec.feed.push(activity, now)
  }

  cancel(reason?: string): void {
    if (this.isCancelled || this.isSettled) return
    this.isCancelled = true
    this.cancelReason = reason
    if (this.inner === undefined) {
      this.settle({ output: [], stopReason: 'aborted' })
      return
    }
    try {
      this.inner.cancel(reason)
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
    try {
      await this.inner?.dispose()
    } catch (error) {
      this.spec.observer.failed(this, 'dispose', error)
    }
    await this.result
    this.untie()
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
    if (raw.usage !== undefined) this.ownUsage = raw.usage
    const result = this.complete(raw)
    this.spec.observer.settled(this, result)
    this.resolve(result)
  }

  private complete(raw: SubagentResult): SubagentResult {
    const { structured } = raw
    const stopReason = this.isCancelled ? 'aborted' : raw.stopReason
    const diagnostic = (this.isCancelled ? this.cancelReason : undefined) ?? raw.diagnostic
    const { usage } = this
    return {
      output: Object.isFrozen(raw.output) ? raw.output : freezeJson(raw.output, 'output'),
      ...(structured !== undefined && stopReason === 'completed' && { structured }),
      stopReason,
      ...((raw.usage !== undefined || usage !== noUsage) && { usage }),
      ...(diagnostic !== undefined && { diagnostic: bounded(diagnostic) }),
    }
  }
}

function reasonOf({ reason }: AbortSignal): string | undefined {
  return typeof reason === 'string' ? reason : undefined
}

function faultOf(provider: SubagentProvider, error: unknown): SubagentResult {
  const diagnostic = `subagent provider "${provider.name}" failed: ${messageOf(error)}`
  return { output: [], stopReason: 'error', diagnostic }
}

function bounded(text: string): string {
  const bytes = Buffer.from(text.toWellFormed())
  if (bytes.length <= maxDiagnosticBytes) return text.toWellFormed()
  const cut = '…'
  return (
    new TextDecoder().decode(bytes.subarray(0, maxDiagnosticBytes - 8)).replace(/\uFFFD+$/, '') +
    cut
  )
}
