/** An agent that this package's loop drives: its inbox, its status, its end. */
import type { Context } from '@deepseek-ai/cordis'
import {
  AgentError,
  type AgentOptions,
  type AgentSpec,
  type AgentStatus,
  type DrivenAgent,
} from '@deepseek-ai/dsh-agent'
import { failureOf, type UserContent } from '@deepseek-ai/dsh-llm'
import { freezeJson, type Session, type SessionId, type TurnEnd } from '@deepseek-ai/dsh-session'
import type { ToolScope } from '@deepseek-ai/dsh-tools'
import { runTurn } from './turn.ts'
import type { LoopServices, Turn } from './types.ts'

interface Input {
  readonly content: UserContent
  readonly settle: (end: TurnEnd) => void
  isCancelled: boolean
  cancelReason?: string | undefined
}

/** Drains an inbox, one turn after another. */
export class LoopAgent implements DrivenAgent {
  readonly session: Session
  readonly toolScope: ToolScope | undefined
  readonly ctx: Context
  options: AgentOptions
  status: AgentStatus = 'idle'
  private readonly services: LoopServices
  private readonly inbox: Input[] = []
  /** Input for the turn that runs. */
  private steering: Input[] = []
  private readonly callbacks = new Set<() => Promise<void>>()
  /** Tool calls that outlived their turn. */
  private readonly left = new Set<Promise<unknown>>()
  private controller: AbortController | undefined
  private working: Promise<void> | undefined
  private isStopped = false

  constructor(ctx: Context, spec: AgentSpec, services: LoopServices) {
    this.ctx = ctx
    this.session = spec.session
    this.options = spec.options
    this.toolScope = spec.toolScope
    this.services = services
  }

  get id(): SessionId {
    return this.session.id
  }

  get model(): string {
    return this.options.model
  }

  get cwd(): string {
    return this.session.header.cwd
  }

  send(input: string | UserContent): Promise<TurnEnd> {
    return this.accept(input, this.inbox)
  }

  steer(input: string | UserContent): Promise<TurnEnd> {
    return this.accept(input, this.controller === undefined ? this.inbox : this.steering)
  }

  cancel(reason?: string): void {
    for (const input of [...this.inbox, ...this.steering]) {
      if (input.isCancelled) continue
      input.isCancelled = true
      input.cancelReason = reason
    }
    this.controller?.abort(reason)
  }

  async whenIdle(): Promise<void> {
    while (this.working !== undefined) await this.working
  }

  setModel(model: string): void {
    this.services.models.require(model)
    this.options = { ...this.options, model }
  }

  onDispose(callback: () => Promise<void>): () => void {
    if (this.status === 'disposed') throw this.disposed()
    this.callbacks.add(callback)
    return () => this.callbacks.delete(callback)
  }

  async stop(): Promise<void> {
    // Set first: whoever hears of the cancel may send input.
    this.isStopped = true
    this.cancel('the agent was disposed')
    while (this.callbacks.size > 0) await this.disposeTied()
    await this.whenIdle()
    await this.whenNothingIsLeft()
    // Calls that were slow to end may have tied something meanwhile, up to the tick of this check.
    while (this.callbacks.size > 0) await this.disposeTied()
    this.setStatus('disposed')
  }

  private accept(input: string | UserContent, queue: Input[]): Promise<TurnEnd> {
    if (this.isStopped) throw this.disposed()
    const content = freezeJson<UserContent>(
      typeof input === 'string' ? [{ type: 'text', text: input }] : input,
      'input',
    )
    return new Promise((settle) => {
      queue.push({ content, settle, isCancelled: false })
      this.wake()
    })
  }

  private wake(): void {
    if (this.working !== undefined) return
    this.status = 'running'
    // Input of one tick shares a turn, and may be cancelled before it opens.
    this.working = Promise.resolve().then(() => this.work())
  }

  private async work(): Promise<void> {
    // Not in `wake`: after a send from a listener of `idle`, others would hear of `running` first.
    this.setStatus('running')
    while (this.inbox.length > 0) {
      const { turn, taken } = this.nextTurn()
      // A turn promises never to reject; input that is never settled would hang whoever waits for it.
      const end = await runTurn(turn).catch((error: unknown) => this.brokenOff(error))
      this.controller = undefined
      // What came too late for the turn opens the next one.
      this.inbox.unshift(...this.steering.splice(0))
      for (const { settle } of taken) settle(end)
    }
    this.working = undefined
    this.setStatus('idle')
  }

  /** The turn of the next batch, and the input that ends with it: what it is steered by is added. */
  private nextTurn(): { readonly turn: Turn; readonly taken: readonly Input[] } {
    const batch = this.takeBatch()
    const controller = new AbortController()
    const { signal } = controller
    const { promise: aborted, resolve } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (batch[0]?.isCancelled === true) controller.abort(batch[0].cancelReason)
    this.controller = controller
    const taken = [...batch]
    const turn: Turn = {
      agent: this,
      services: this.services,
      options: this.options,
      input: batch.map(({ content }) => content),
      signal,
      aborted,
      drainSteering: () => {
        const drained = this.steering.splice(0)
        taken.push(...drained)
        for (const { content } of drained) this.session.append('user/message', { content })
        return drained.length > 0
      },
      leave: (call) => {
        this.left.add(call)
        void call.finally(() => this.left.delete(call))
      },
    }
    return { turn, taken }
  }

  private brokenOff(error: unknown): TurnEnd {
    this.services.warn(`a turn of agent "${this.id}" broke off`, error)
    return { reason: 'error', error: failureOf(error, 'TURN_FAILED') }
  }

  /** The inputs at the head of the inbox that share a fate: all cancelled, or none. */
  private takeBatch(): Input[] {
    const isCancelled = this.inbox[0]?.isCancelled
    const end = this.inbox.findIndex((input) => input.isCancelled !== isCancelled)
    return this.inbox.splice(0, end === -1 ? this.inbox.length : end)
  }

  private setStatus(status: AgentStatus): void {
    this.status = status
    this.services.notify('agent/status', { agent: this, status })
  }

  private async disposeTied(): Promise<void> {
    const callbacks = [...this.callbacks]
    this.callbacks.clear()
    for (const result of await Promise.allSettled(callbacks.map(async (call) => call()))) {
      if (result.status === 'fulfilled') continue
      this.services.warn(`something tied to agent "${this.id}" was not disposed`, result.reason)
    }
  }

  private disposed(): AgentError {
    return new AgentError('AGENT_DISPOSED', `agent "${this.id}" is disposed: create another one`)
  }

  private async whenNothingIsLeft(): Promise<void> {
    if (this.left.size === 0) return
    const { promise: isOver, resolve } = Promise.withResolvers<'over'>()
    const timer = setTimeout(resolve, this.services.stopGraceMs, 'over')
    const outcome = await Promise.race([Promise.allSettled(this.left), isOver])
    clearTimeout(timer)
    if (outcome !== 'over') return
    const message = `${this.left.size} tool calls of agent "${this.id}" ignore their cancel`
    this.services.warn(message, undefined)
  }
}
