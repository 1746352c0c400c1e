/** The OpenAI responses protocol. */
import type { JsonObject } from '@deepseek-ai/dsh-llm'
import { event as encode, objectsOf, textOf } from './json.ts'
import type { CompleteReply, ReceivedMessage, WireProtocol } from './types.ts'

/** `POST …/responses`. */
export const responsesProtocol: WireProtocol = {
  serves: (path) => path.endsWith('/responses'),
  read(body) {
    const items = objectsOf(body.input)
    return {
      model: textOf(body.model),
      system: items
        .filter(isSystem)
        .map((item) => textOf(item.content))
        .join('\n'),
      messages: items.flatMap(messagesOf),
      tools: objectsOf(body.tools).map(({ name }) => textOf(name)),
    }
  },
  head(reply) {
    const { id, model, reasoning, deltas } = reply
    const response = { id, model, created_at: 1 }
    return [
      event('response.created', { response }),
      event('response.in_progress', { response }),
      ...(reasoning === undefined ? [] : reasoningEvents(reply, reasoning)),
      ...(deltas.length === 0 ? [] : [event('response.output_item.added', textItem(reply, ''))]),
      ...deltas.map((delta) =>
        event('response.output_text.delta', { item_id: `msg-${id}`, output_index: 1, delta }),
      ),
    ]
  },
  tail(reply) {
    const { deltas, calls, finish } = reply
    const reason = finish === 'refusal' ? 'content_filter' : 'max_output_tokens'
    const isComplete = finish === 'stop' || finish === 'tool-calls'
    return [
      ...(deltas.length === 0
        ? []
        : [event('response.output_item.done', textItem(reply, deltas.join('')))]),
      ...calls.flatMap((_, index) => callEvents(reply, index)),
      event(isComplete ? 'response.completed' : 'response.incomplete', {
        response: {
          id: reply.id,
          ...(!isComplete && { incomplete_details: { reason } }),
          usage: usageOf(reply),
        },
      }),
    ]
  },
  failure: (status, message) => ({
    error: { message, type: status >= 500 ? 'server_error' : 'invalid_request_error', code: null },
  }),
  overload: () =>
    event('error', { error: { type: 'server_error', code: 'overloaded', message: 'overloaded' } }),
}

function event(type: string, data: JsonObject): string {
  return encode({ type, sequence_number: 1, ...data }, type)
}

function isSystem({ role }: JsonObject): boolean {
  return role === 'system' || role === 'developer'
}

function messagesOf(item: JsonObject): ReceivedMessage[] {
  if (item.type === 'function_call_output') return [{ role: 'tool', text: textOf(item.output) }]
  if (item.role !== 'user' && item.role !== 'assistant') return []
  return [{ role: item.role, text: textOf(item.content) }]
}

function reasoningEvents({ id, signature }: CompleteReply, reasoning: string): string[] {
  const item = { type: 'reasoning', id: `rs-${id}` }
  const place = { item_id: `rs-${id}`, output_index: 0, summary_index: 0 }
  return [
    event('response.output_item.added', { output_index: 0, item }),
    event('response.reasoning_summary_part.added', place),
    event('response.reasoning_summary_text.delta', { ...place, delta: reasoning }),
    event('response.reasoning_summary_part.done', place),
    event('response.output_item.done', {
      output_index: 0,
      item: { ...item, encrypted_content: signature ?? null },
    }),
  ]
}

function textItem({ id }: CompleteReply, text: string): JsonObject {
  const content = [{ type: 'output_text', text, annotations: [] }]
  return { output_index: 1, item: { type: 'message', id: `msg-${id}`, role: 'assistant', content } }
}

function callEvents({ id, calls }: CompleteReply, index: number): string[] {
  const { callId = '', name = '', input = '' } = calls[index] ?? {}
  const place = { output_index: 2 + index }
  const item = { type: 'function_call', id: `fc-${id}-${index}`, call_id: callId, name }
  return [
    event('response.output_item.added', { ...place, item: { ...item, arguments: '' } }),
    event('response.function_call_arguments.delta', { ...place, item_id: item.id, delta: input }),
    event('response.output_item.done', {
      ...place,
      item: { ...item, arguments: input, status: 'completed' },
    }),
  ]
}

function usageOf({ usage }: CompleteReply): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens = 0 } = usage
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  }
}
