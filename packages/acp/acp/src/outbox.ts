/** The updates of one session on their way to the client: in order, and no more than one that is slow can bear. */
import type { SessionUpdate } from '@agentclientprotocol/sdk'

/** Sends one update at a time; what waits meanwhile is gathered, so that it stays small. */
export class Outbox {
  private readonly send: (update: SessionUpdate) => Promise<void>
  private readonly waiting: SessionUpdate[] = []
  private sending: Promise<void> | undefined

  /** @param send settles when the client has room for more; rejects when it is gone. */
  constructor(send: (update: SessionUpdate) => Promise<void>) {
    this.send = send
  }

  push(update: SessionUpdate): void {
    if (!this.gather(update)) this.waiting.push(update)
    this.sending ??= this.sendAll()
  }

  /** Settles when everything is sent, or nobody is there to read it; never rejects. */
  async flushed(): Promise<void> {
    while (this.sending !== undefined) await this.sending
  }

  private async sendAll(): Promise<void> {
    try {
      for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
        await this.send(next)
      }
    } catch {
      // The connection is closed, and the session with it.
      this.waiting.length = 0
    }
    this.sending = undefined
  }

  private gather(update: SessionUpdate): boolean {
    const at =
      update.sessionUpdate === 'tool_call_update'
        ? this.waiting.findLastIndex((other) => isOfCall(other, update.toolCallId))
        : this.waiting.length - 1
    const earlier = this.waiting[at]
    const both = earlier && join(earlier, update)
    if (both === undefined) return false
    this.waiting[at] = both
    return true
  }
}

/** Two updates as one; absent when they must stay apart. */
function join(a: SessionUpdate, b: SessionUpdate): SessionUpdate | undefined {
  if (b.sessionUpdate === 'tool_call_update') {
    if (a.sessionUpdate === 'tool_call_update') return { ...a, ...b }
    return a.sessionUpdate === 'tool_call' ? joinCall(a, b) : undefined
  }
  if (a.sessionUpdate === 'usage_update' && b.sessionUpdate === 'usage_update') return b
  if (!isChunk(a) || !isChunk(b)) return undefined
  if (a.sessionUpdate !== b.sessionUpdate || a.messageId !== b.messageId) return undefined
  if (a.content.type !== 'text' || b.content.type !== 'text') return undefined
  return { ...a, content: { type: 'text', text: a.content.text + b.content.text } }
}

function joinCall(
  call: UpdateOf<'tool_call'>,
  update: UpdateOf<'tool_call_update'>,
): SessionUpdate {
  const { status, content } = update
  return { ...call, ...(status && { status }), ...(content && { content }) }
}

function isOfCall(update: SessionUpdate, toolCallId: string): boolean {
  return 'toolCallId' in update && update.toolCallId === toolCallId
}

function isChunk(
  update: SessionUpdate,
): update is UpdateOf<'agent_message_chunk' | 'agent_thought_chunk'> {
  return (
    update.sessionUpdate === 'agent_message_chunk' || update.sessionUpdate === 'agent_thought_chunk'
  )
}

type UpdateOf<Kind extends SessionUpdate['sessionUpdate']> = Extract<
  SessionUpdate,
  { sessionUpdate: Kind }
>
