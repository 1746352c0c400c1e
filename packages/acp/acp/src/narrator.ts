/** Tells a client what happens in a session, as it happens or from its log. */
import type { SessionUpdate, ToolCallContent } from '@agentclientprotocol/sdk'
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import { toAcpContent } from './content.ts'
import { contentOfResult, viewOfCall } from './tool-calls.ts'

export interface NarratorOptions {
  readonly cwd: string
  readonly push: (update: SessionUpdate) => void
  /** Whether a call of the tool waits for a permission first. */
  readonly mustAsk: (tool: string) => boolean
}

interface OpenCall {
  readonly toolCallId: string
  /** What stays to be seen when the call succeeds, instead of its result. */
  shown: ToolCallContent | undefined
}

/** Makes updates of one session's events; ids are made of the events' numbers, so a replay repeats them. */
export class Narrator {
  private readonly options: NarratorOptions
  private readonly open = new Map<string, OpenCall>()
  /** Of the step whose message is being written. */
  private step = 0

  constructor(options: NarratorOptions) {
    this.options = options
  }

  /** The client's name for a call that has no result yet. */
  toolCallIdOf(callId: string): string | undefined {
    return this.open.get(callId)?.toolCallId
  }

  /** What an open call shows in the place of its result. */
  shownIn(callId: string): ToolCallContent | undefined {
    return this.open.get(callId)?.shown
  }

  /** A piece of the message that is being written. */
  delta(kind: 'text' | 'reasoning', text: string): void {
    this.options.push({
      sessionUpdate: kind === 'text' ? 'agent_message_chunk' : 'agent_thought_chunk',
      messageId: `${kind}-${this.step}`,
      content: { type: 'text', text },
    })
  }

  /** An event of the log, right after it was committed. What a message says was told by its deltas. */
  event(event: SessionEvent): void {
    switch (event.type) {
      case 'step/start':
        this.step = event.seq
        break
      case 'tool/call':
        this.call(event)
        break
      case 'tool/result':
        this.result(event)
        break
      case 'turn/start':
      case 'user/message':
      case 'context/message':
      case 'assistant/message':
      case 'step/end':
      case 'turn/end':
        break
    }
  }

  /** An event of a log that is told anew. */
  replay(event: SessionEvent): void {
    this.event(event)
    if (event.type === 'user/message') {
      for (const block of event.data.content) {
        this.options.push({
          sessionUpdate: 'user_message_chunk',
          messageId: `user-${event.seq}`,
          content: toAcpContent(block),
        })
      }
    } else if (event.type === 'assistant/message') {
      for (const block of event.data.content) {
        if (block.type !== 'tool-call' && block.text !== '') this.delta(block.type, block.text)
      }
    }
  }

  /** What a call that runs is doing, in one line. */
  progress(callId: string, text: string): void {
    if (this.shownIn(callId) !== undefined) return
    this.update(callId, { content: [{ type: 'content', content: { type: 'text', text } }] })
  }

  /** A call that has waited is running. */
  started(callId: string): void {
    this.update(callId, {})
  }

  /** What a call is going to change, or the terminal in which it works. */
  show(callId: string, shown: ToolCallContent): void {
    const call = this.open.get(callId)
    if (call === undefined) return
    call.shown = shown
    const { toolCallId } = call
    this.options.push({ sessionUpdate: 'tool_call_update', toolCallId, content: [shown] })
  }

  private call({ seq, data }: SessionEvent<'tool/call'>): void {
    const { callId, name, input } = data
    const { cwd, mustAsk, push } = this.options
    const toolCallId = `call-${seq}`
    const view = viewOfCall(name, input, cwd)
    this.open.set(callId, { toolCallId, shown: view.content?.[0] })
    const status = mustAsk(name) ? 'pending' : 'in_progress'
    push({ sessionUpdate: 'tool_call', toolCallId, status, ...view })
  }

  private result({ data }: SessionEvent<'tool/result'>): void {
    const { callId, content, isError } = data
    const call = this.open.get(callId)
    if (call === undefined) return
    this.open.delete(callId)
    const { toolCallId, shown } = call
    this.options.push({
      sessionUpdate: 'tool_call_update',
      toolCallId,
      status: isError ? 'failed' : 'completed',
      content: shown !== undefined && !isError ? [shown] : contentOfResult(content),
    })
  }

  private update(callId: string, change: { readonly content?: ToolCallContent[] }): void {
    const toolCallId = this.toolCallIdOf(callId)
    // What a call tells after its result comes too late.
    if (toolCallId === undefined) return
    this.options.push({
      sessionUpdate: 'tool_call_update',
      toolCallId,
      status: 'in_progress',
      ...change,
    })
  }
}
