/** A model adapter whose replies a test writes by hand. */
import type {
  Failure,
  FinishReason,
  JsonValue,
  ModelAdapter,
  ModelRequest,
  StreamChunk,
  Usage,
} from '@deepseek-ai/dsh-llm'

/** One reply; a text stands for `{ text }`. */
export interface ScriptedReply {
  readonly reasoning?: string
  readonly text?: string
  /** Streams these instead of `text`. */
  readonly deltas?: readonly string[]
  readonly calls?: readonly { name: string; input?: JsonValue; callId?: string }[]
  /** Default: `tool-calls` when there are calls, else `stop`. */
  readonly finish?: FinishReason
  readonly error?: Failure
  readonly usage?: Usage
  /** Waits for this, or for the abort, after the text and before the calls and the finish. */
  readonly until?: Promise<unknown>
  /** Never finishes, and ignores the signal. */
  readonly isDeaf?: boolean
}

/** Answers a request; `index` counts the requests of its session from 0. */
export type Answer = (
  request: ModelRequest,
  index: number,
) => string | ScriptedReply | Promise<string | ScriptedReply>

export interface ScriptedModel extends ModelAdapter {
  /** Every request so far, with the messages as they were then. */
  readonly requests: ModelRequest[]
}

/** Makes an adapter that serves one model, by default `scripted`. A list answers in order, per session. */
export function scriptedModel(
  script: Answer | readonly (string | ScriptedReply)[],
  name = 'scripted',
): ScriptedModel {
  const requests: ModelRequest[] = []
  const counts = new Map<string, number>()
  return {
    name,
    models: [{ name }],
    requests,
    async *stream(request) {
      const index = counts.get(request.sessionId) ?? 0
      counts.set(request.sessionId, index + 1)
      requests.push({ ...request, messages: [...request.messages] })
      const reply = typeof script === 'function' ? await script(request, index) : script[index]
      if (reply === undefined) throw new Error(`no reply is scripted for request ${index}`)
      yield* chunksOf(typeof reply === 'string' ? { text: reply } : reply, request)
    },
  }
}

async function* chunksOf(
  reply: ScriptedReply,
  { signal, sessionId }: ModelRequest,
): AsyncGenerator<StreamChunk> {
  if (reply.reasoning !== undefined) yield { type: 'reasoning-delta', text: reply.reasoning }
  for (const text of reply.deltas ?? [reply.text ?? '']) yield { type: 'text-delta', text }
  if (reply.isDeaf === true) await new Promise(() => {})
  if (reply.until !== undefined) await Promise.race([reply.until, abortOf(signal)])
  signal.throwIfAborted()
  const calls = reply.calls ?? []
  for (const [index, { name, input = {}, callId }] of calls.entries()) {
    yield { type: 'tool-call', callId: callId ?? `${sessionId.slice(0, 8)}-${index}`, name, input }
  }
  yield { type: 'usage', usage: reply.usage ?? { inputTokens: 10, outputTokens: 5 } }
  const reason = reply.finish ?? (calls.length > 0 ? 'tool-calls' : 'stop')
  yield { type: 'finish', reason, ...(reply.error !== undefined && { error: reply.error }) }
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
