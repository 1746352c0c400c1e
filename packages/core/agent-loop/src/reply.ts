/** One model request, from the assembled prompt to the logged message. */
import {
  type AssistantContent,
  type Failure,
  type FinishReason,
  type JsonObject,
  noUsage,
  type StreamChunk,
  type ToolCallBlock,
  type Usage,
} from '@deepseek-ai/dsh-llm'
import { loggableFinish, loggableInput, loggableMetadata, loggableUsage } from './loggable.ts'
import type { Turn } from './types.ts'

/** What the model answered. */
export interface Reply {
  readonly calls: readonly ToolCallBlock[]
  readonly finish: FinishReason
  readonly error?: Failure
}

/** Asks the model for the next message and logs it; a cancel logs what had arrived. */
export async function ask(turn: Turn, system: string): Promise<Reply> {
  const { agent, services, signal } = turn
  const { model, maxOutputTokens, temperature } = turn.options
  const draft = new Draft()
  const stream = services.models.stream({
    model,
    system,
    messages: agent.session.deriveMessages(),
    tools: services.toolTable.schemas(agent),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    signal,
    sessionId: agent.id,
  })
  // The race is what makes a cancel prompt when the adapter is deaf to the signal.
  await Promise.race([receive(turn, stream, draft), turn.aborted])
  const { content, calls, usage, finish, error } = draft.close(signal.aborted)
  agent.session.append('assistant/message', { content, model, usage, finish })
  return { calls, finish, ...(error !== undefined && { error }) }
}

async function receive(
  turn: Turn,
  stream: AsyncIterable<StreamChunk>,
  draft: Draft,
): Promise<void> {
  const { agent, services, signal } = turn
  for await (const chunk of stream) {
    if (signal.aborted) return
    draft.add(chunk)
    if (chunk.type === 'text-delta') {
      services.notify('agent/delta', { agent, kind: 'text', text: chunk.text })
    } else if (chunk.type === 'reasoning-delta') {
      services.notify('agent/delta', { agent, kind: 'reasoning', text: chunk.text })
    }
  }
}

/** A message that is still growing. */
class Draft {
  private readonly content: AssistantContent[number][] = []
  private readonly calls: ToolCallBlock[] = []
  private readonly callIds = new Set<string>()
  private kind: 'text' | 'reasoning' = 'text'
  private text = ''
  private metadata: JsonObject | undefined
  private usage: Usage = noUsage
  private finish: FinishReason = 'error'
  private error: Failure | undefined

  add(chunk: StreamChunk): void {
    switch (chunk.type) {
      case 'text-delta':
        this.grow('text', chunk.text)
        break
      case 'reasoning-delta':
        this.grow('reasoning', chunk.text)
        this.metadata = loggableMetadata(chunk.metadata) ?? this.metadata
        break
      case 'tool-call':
        this.endBlock()
        this.addCall(chunk)
        break
      case 'usage':
        this.usage = loggableUsage(chunk.usage)
        break
      case 'finish':
        ;({ finish: this.finish, error: this.error } = loggableFinish(chunk))
        break
    }
  }

  close(isAborted: boolean): Omit<Reply, 'finish'> & {
    readonly content: AssistantContent
    readonly usage: Usage
    readonly finish: FinishReason
  } {
    this.endBlock()
    const { content, calls, usage, error } = this
    const finish = isAborted ? 'aborted' : this.finish
    return { content, calls, usage, finish, ...(error !== undefined && { error }) }
  }

  private grow(kind: 'text' | 'reasoning', text: string): void {
    if (this.kind !== kind) this.endBlock()
    this.kind = kind
    this.text += text
  }

  private endBlock(): void {
    const { kind, text, metadata } = this
    // A signature may come without text, and must go back all the same.
    if (kind === 'reasoning' && (text !== '' || metadata !== undefined)) {
      this.content.push({ type: kind, text, ...(metadata !== undefined && { metadata }) })
    } else if (text !== '') {
      this.content.push({ type: 'text', text })
    }
    this.text = ''
    this.metadata = undefined
  }

  private addCall(call: Omit<ToolCallBlock, 'type'>): void {
    const metadata = loggableMetadata(call.metadata)
    const block: ToolCallBlock = {
      type: 'tool-call',
      callId: this.uniqueId(call.callId),
      name: typeof call.name === 'string' ? call.name : '',
      input: loggableInput(call.input),
      ...(metadata !== undefined && { metadata }),
    }
    this.content.push(block)
    this.calls.push(block)
  }

  /** Some models repeat or omit ids; within a message each call needs one of its own. */
  private uniqueId(callId: unknown): string {
    const id = typeof callId === 'string' && callId !== '' ? callId : 'call'
    let unique = id
    for (let count = 2; this.callIds.has(unique); count += 1) unique = `${id}-${count}`
    this.callIds.add(unique)
    return unique
  }
}
