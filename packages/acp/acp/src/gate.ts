/** What stands before each call of one session: the client keeps up, sees it, and permits it. */
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { ToolCall, ToolResult } from '@deepseek-ai/dsh-tools'
import type { Narrator } from './narrator.ts'
import type { Outbox } from './outbox.ts'
import type { Permissions } from './permission.ts'
import { diffOfWrite, viewOfCall } from './tool-calls.ts'

/** The text that a file holds; absent when there is none that the agent could read. */
export type ReadText = (
  agent: Agent,
  path: string,
  signal: AbortSignal,
) => Promise<string | undefined>

export interface GateOptions {
  /** The agent whose calls the client sees. */
  readonly agent: Agent
  /** Tools whose calls wait for a permission. */
  readonly asks: ReadonlySet<string>
  readonly outbox: Outbox
  readonly narrator: Narrator
  readonly permissions: Permissions
  readonly readText: ReadText
}

/** Lets calls of the agent, and of those below it, run when they may. */
export class Gate {
  private readonly options: GateOptions
  /** Calls of children that were shown. */
  private shown = 0

  constructor(options: GateOptions) {
    this.options = options
  }

  async pass(call: ToolCall, next: () => Promise<ToolResult>): Promise<ToolResult> {
    const { agent, asks, narrator } = this.options
    const isAsked = asks.has(call.name)
    if (call.agent.id !== agent.id) return isAsked ? this.passOfChild(call, next) : next()
    // A client that does not read slows the agent down, instead of filling the memory.
    await this.flushedUnless(call.signal)
    if (call.name === 'write') await this.showWrite(call)
    if (!isAsked) return next()
    const refusal = await this.ask(call, narrator.toolCallIdOf(call.callId) ?? call.callId)
    if (refusal !== undefined) return refusal
    narrator.started(call.callId)
    return next()
  }

  /** Of the calls of children the client sees those that it is asked for. */
  private async passOfChild(call: ToolCall, next: () => Promise<ToolResult>): Promise<ToolResult> {
    const { agent, outbox } = this.options
    this.shown += 1
    const toolCallId = `child-call-${this.shown}`
    const tell = (status: 'in_progress' | 'completed' | 'failed'): void =>
      outbox.push({ sessionUpdate: 'tool_call_update', toolCallId, status })
    const view = viewOfCall(call.name, call.input, agent.cwd)
    const opening: SessionUpdate = { sessionUpdate: 'tool_call', toolCallId, ...view }
    outbox.push({ ...opening, status: 'pending' })
    const refusal = await this.ask(call, toolCallId)
    if (refusal === undefined) tell('in_progress')
    const result = refusal ?? (await next())
    tell(result.isError ? 'failed' : 'completed')
    return result
  }

  private async ask(call: ToolCall, toolCallId: string): Promise<ToolResult | undefined> {
    const { agent, narrator, permissions } = this.options
    // The client must know the call before it is asked for it.
    await this.flushedUnless(call.signal)
    const isOwn = call.agent.id === agent.id
    const shown = isOwn ? narrator.shownIn(call.callId) : undefined
    return permissions.check(call, {
      toolCallId,
      status: 'pending',
      ...viewOfCall(call.name, call.input, agent.cwd),
      ...(shown !== undefined && { content: [shown] }),
    })
  }

  private async showWrite({ callId, name, input, signal }: ToolCall): Promise<void> {
    const { agent, narrator, readText } = this.options
    const path = viewOfCall(name, input, agent.cwd).locations?.[0]?.path
    if (path === undefined) return
    const diff = diffOfWrite(input, agent.cwd, await readText(agent, path, signal))
    if (diff !== undefined) narrator.show(callId, diff)
  }

  private async flushedUnless(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    const { promise: aborted, resolve } = Promise.withResolvers<void>()
    const onAbort = (): void => resolve()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await Promise.race([this.options.outbox.flushed(), aborted])
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }
}
