/** The OpenAI chat-completions protocol, with the additions of DeepSeek. */
import type { JsonObject, JsonValue } from '@deepseek-ai/dsh-llm'
import { event, objectOf, objectsOf, textOf } from './json.ts'
import type { CompleteReply, ReceivedMessage, WireProtocol } from './types.ts'

const finishReasons = {
  stop: 'stop',
  'tool-calls': 'tool_calls',
  'max-tokens': 'length',
  refusal: 'content_filter',
}

/** `POST …/chat/completions`. */
export const chatProtocol: WireProtocol = {
  serves: (path) => path.endsWith('/chat/completions'),
  read(body) {
    const messages = objectsOf(body.messages)
    return {
      model: textOf(body.model),
      system: messages.filter(isSystem).map(contentOf).join('\n'),
      messages: messages.filter((message) => !isSystem(message)).map(messageOf),
      tools: objectsOf(body.tools).map((tool) => textOf(objectOf(tool.function).name)),
    }
  },
  head(reply) {
    const { reasoning, deltas } = reply
    return [
      chunk(reply, { role: 'assistant', content: '' }),
      ...(reasoning === undefined ? [] : [chunk(reply, { reasoning_content: reasoning })]),
      ...deltas.map((content) => chunk(reply, { content })),
    ]
  },
  tail(reply) {
    return [
      ...reply.calls.flatMap(({ callId, name, input }, index) => [
        callChunk(reply, {
          index,
          id: callId,
          type: 'function',
          function: { name, arguments: '' },
        }),
        ...halvesOf(input).map((text) =>
          callChunk(reply, { index, function: { arguments: text } }),
        ),
      ]),
      chunk(reply, {}, finishReasons[reply.finish]),
      event({ ...envelope(reply), choices: [], usage: usageOf(reply) }),
      'data: [DONE]\n\n',
    ]
  },
  failure: (status, message) => ({ error: { message, type: typeOf(status), code: null } }),
  overload: () => event({ error: { message: 'overloaded', type: 'server_error', code: 503 } }),
}

function isSystem({ role }: JsonObject): boolean {
  return role === 'system' || role === 'developer'
}

function contentOf({ content }: JsonObject): string {
  return textOf(content)
}

function messageOf(message: JsonObject): ReceivedMessage {
  return { role: message.role as ReceivedMessage['role'], text: contentOf(message) }
}

function envelope({ id, model }: CompleteReply): JsonObject {
  return { id, object: 'chat.completion.chunk', created: 1, model }
}

function chunk(reply: CompleteReply, delta: JsonObject, finish: string | null = null): string {
  return event({ ...envelope(reply), choices: [{ index: 0, delta, finish_reason: finish }] })
}

function callChunk(reply: CompleteReply, call: JsonObject): string {
  return chunk(reply, { tool_calls: [call] })
}

/** Arguments arrive in pieces, as they do from real servers. */
function halvesOf(text: string): string[] {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter((half) => half !== '')
}

function usageOf({ usage }: CompleteReply): JsonValue {
  const { inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens = 0 } = usage
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
    prompt_cache_hit_tokens: cachedInputTokens,
    prompt_cache_miss_tokens: inputTokens - cachedInputTokens,
  }
}

function typeOf(status: number): string {
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}
