/** The Anthropic messages protocol. */
import type { JsonObject } from '@deepseek-ai/dsh-llm'
import { event as encode, objectsOf, textOf } from './json.ts'
import type { CompleteReply, ReceivedMessage, WireProtocol } from './types.ts'

const stopReasons = {
  stop: 'end_turn',
  'tool-calls': 'tool_use',
  'max-tokens': 'max_tokens',
  refusal: 'refusal',
}

/** `POST …/messages`. */
export const messagesProtocol: WireProtocol = {
  serves: (path) => path.endsWith('/messages'),
  read(body) {
    return {
      model: textOf(body.model),
      system: textOf(body.system),
      messages: objectsOf(body.messages).flatMap(messagesOf),
      tools: objectsOf(body.tools).map(({ name }) => textOf(name)),
    }
  },
  head(reply) {
    const { id, model, reasoning, signature, deltas } = reply
    const usage = { ...usageOf(reply), output_tokens: 0 }
    const message = { id, type: 'message', role: 'assistant', model, content: [], usage }
    return [
      event('message_start', { message }),
      event('ping', {}),
      ...(reasoning === undefined
        ? []
        : block(0, { type: 'thinking', thinking: '' }, [
            { type: 'thinking_delta', thinking: reasoning },
            ...(signature === undefined ? [] : [{ type: 'signature_delta', signature }]),
          ])),
      ...(deltas.length === 0 ? [] : [start(1, { type: 'text', text: '' })]),
      ...deltas.map((text) => delta(1, { type: 'text_delta', text })),
    ]
  },
  tail(reply) {
    const { deltas, calls, finish } = reply
    return [
      ...(deltas.length === 0 ? [] : [event('content_block_stop', { index: 1 })]),
      ...calls.flatMap(({ callId, name, input }, index) =>
        block(2 + index, { type: 'tool_use', id: callId, name, input: {} }, [
          { type: 'input_json_delta', partial_json: input },
        ]),
      ),
      event('message_delta', {
        delta: { stop_reason: stopReasons[finish], stop_sequence: null },
        usage: usageOf(reply),
      }),
      event('message_stop', {}),
    ]
  },
  failure: (status, message) => ({ type: 'error', error: { type: typeOf(status), message } }),
  overload: () => event('error', { error: { type: 'overloaded_error', message: 'overloaded' } }),
}

function event(type: string, data: JsonObject): string {
  return encode({ type, ...data }, type)
}

function start(index: number, content: JsonObject): string {
  return event('content_block_start', { index, content_block: content })
}

function delta(index: number, data: JsonObject): string {
  return event('content_block_delta', { index, delta: data })
}

function block(index: number, content: JsonObject, deltas: readonly JsonObject[]): string[] {
  return [
    start(index, content),
    ...deltas.map((data) => delta(index, data)),
    event('content_block_stop', { index }),
  ]
}

/** Tool results travel inside a user message; each is a message of its own here. */
function messagesOf({ role, content }: JsonObject): ReceivedMessage[] {
  if (role === 'assistant') return [{ role, text: textOf(content) }]
  const blocks =
    typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content)
  const results = blocks.filter(({ type }) => type === 'tool_result')
  const rest = blocks.filter(({ type }) => type !== 'tool_result')
  return [
    ...results.map((result) => ({ role: 'tool' as const, text: textOf(result.content) })),
    ...(rest.length === 0 ? [] : [{ role: 'user' as const, text: textOf(rest) }]),
  ]
}

function usageOf({ usage }: CompleteReply): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens } = usage
  return {
    input_tokens: inputTokens - cachedInputTokens,
    cache_read_input_tokens: cachedInputTokens,
    cache_creation_input_tokens: 0,
    output_tokens: outputTokens,
    ...(reasoningTokens !== undefined && {
      output_tokens_details: { thinking_tokens: reasoningTokens },
    }),
  }
}

function typeOf(status: number): string {
  const types: Record<number, string> = { 401: 'authentication_error', 429: 'rate_limit_error' }
  return types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}
