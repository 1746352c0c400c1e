/** One session of a client: an agent, its prompts one after another, and what the client hears of it. */
import { setImmediate as setImmediateAsync } from 'node:timers/promises'
import type {
  AgentContext,
  PromptResponse,
  RequestError,
  SessionUpdate,
  StopReason,
  ToolCallContent,
} from '@agentclientprotocol/sdk'
import type { Agent, AgentHandle } from '@deepseek-ai/dsh-agent'
import { addUsage, noUsage, type Usage, type UserContent } from '@deepseek-ai/dsh-llm'
import type { SessionEvent, SessionId, TurnEnd } from '@deepseek-ai/dsh-session'
import { failed, invalidRequest } from './errors.ts'
import { Gate, type ReadText } from './gate.ts'
import { Narrator } from './narrator.ts'
import { Outbox } from './outbox.ts'
import { type Ask, Permissions } from './permission.ts'

export interface SessionOptions {
  readonly handle: AgentHandle
  readonly request: AgentContext['request']
  /** Tools whose calls wait for a permission. */
  readonly asks: ReadonlySet<string>
  readonly send: (update: SessionUpdate) => Promise<void>
  readonly ask: Ask
  readonly readText: ReadText
  /** Whether the client is told of tokens as they are used. */
  readonly tellsUsage: boolean
}

interface Prompt {
  isCancelled: boolean
  /** Settles when its response is on its way. */
  readonly answered: Promise<void>
}

/** The protocol wants the size of the context window, which no model adapter tells. */
const unknownSize = 0

/** Serves one agent to the client. Its owner calls `dispose` on every path. */
export class AcpSession {
  readonly agent: Agent
  readonly gate: Gate
  readonly narrator: Narrator
  /** Sends a request to the client. */
  readonly request: AgentContext['request']
  private readonly handle: AgentHandle
  private readonly outbox: Outbox
  private readonly tellsUsage: boolean
  private prompting: Prompt | undefined
  /** Tokens since the last response, those of children included. */
  private usage: Usage = noUsage

  constructor({ handle, request, asks, send, ask, readText, tellsUsage }: SessionOptions) {
    const { agent } = handle
    const outbox = new Outbox(send)
    const narrator = new Narrator({
      cwd: agent.cwd,
      push: (update) => outbox.push(update),
      mustAsk: (tool) => asks.has(tool),
    })
    const permissions = new Permissions(ask)
    this.handle = handle
    this.request = request
    this.agent = agent
    this.outbox = outbox
    this.tellsUsage = tellsUsage
    this.narrator = narrator
    this.gate = new Gate({ agent, asks, outbox, narrator, permissions, readText })
  }

  get id(): SessionId {
    return this.agent.id
  }

  private get isBusy(): boolean {
    return this.prompting?.isCancelled === false
  }

  /**
   * Runs one turn. While a cancelled one ends, the next prompt waits for it.
   * @param signal cancels this prompt and no other.
   * @throws RequestError -32600 while another turn runs, -32603 when the turn fails.
   */
  async prompt(content: UserContent, signal: AbortSignal): Promise<PromptResponse> {
    // The SDK lets a prompt overtake the cancel before it when both come in one chunk.
    if (this.isBusy) await setImmediateAsync()
    if (signal.aborted) return { stopReason: 'cancelled' }
    const earlier = this.prompting
    if (this.isBusy) {
      throw invalidRequest(`session "${this.id}" is busy: cancel its turn, or wait for its end`)
    }
    const { promise: answered, resolve } = Promise.withResolvers<void>()
    const prompt: Prompt = { isCancelled: false, answered }
    this.prompting = prompt
    // One that another waits for is cancelled already.
    const onAbort = (): void => {
      if (this.prompting === prompt) this.cancel()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await earlier?.answered
      return await this.run(content, prompt)
    } finally {
      signal.removeEventListener('abort', onAbort)
      if (this.prompting === prompt) this.prompting = undefined
      // The response itself is written in this turn of the event loop.
      setImmediate(resolve)
    }
  }

  /** Ends the turn that runs, and the prompt that waits. */
  cancel(): void {
    if (this.prompting !== undefined) this.prompting.isCancelled = true
    this.agent.cancel('cancelled by the client')
  }

  /** Tells the client the whole log; settles when it is sent. */
  async replay(): Promise<void> {
    for (const event of this.agent.session.events()) this.narrator.replay(event)
    await this.outbox.flushed()
  }

  /** Shows something in a call of the agent itself; settles when it is sent. */
  async show(callId: string, content: ToolCallContent): Promise<void> {
    this.narrator.show(callId, content)
    await this.outbox.flushed()
  }

  async dispose(): Promise<void> {
    this.cancel()
    await this.handle.dispose()
  }

  /** An event of the agent's log. */
  onEvent(event: SessionEvent): void {
    if (event.type === 'assistant/message') this.addUsage(event.data.usage)
    this.narrator.event(event)
  }

  /** Counts tokens for the next response. */
  addUsage(usage: Usage): void {
    this.usage = addUsage(this.usage, usage)
    if (!this.tellsUsage) return
    this.outbox.push({
      sessionUpdate: 'usage_update',
      used: this.usage.inputTokens + this.usage.outputTokens,
      size: unknownSize,
      _meta: { 'dsh/usage': this.usage },
    })
  }

  private async run(content: UserContent, prompt: Prompt): Promise<PromptResponse> {
    if (prompt.isCancelled) return { stopReason: 'cancelled' }
    const end = await this.agent.send(content)
    await this.outbox.flushed()
    const { usage } = this
    this.usage = noUsage
    return { stopReason: stopReasonOf(end), _meta: { 'dsh/usage': usage } }
  }
}

/** @throws RequestError -32603 for a turn that failed. */
function stopReasonOf({ reason, error }: TurnEnd): StopReason {
  switch (reason) {
    case 'completed':
      return 'end_turn'
    case 'max-tokens':
      return 'max_tokens'
    case 'max-steps':
      return 'max_turn_requests'
    case 'refusal':
      return 'refusal'
    case 'aborted':
      return 'cancelled'
    case 'error':
    case 'interrupted':
      throw turnFailed(error)
  }
}

function turnFailed(error: TurnEnd['error']): RequestError {
  return failed(error ?? { code: 'TURN_FAILED', message: 'the turn failed' })
}
