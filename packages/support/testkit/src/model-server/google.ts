/** The Google generative-language protocol. */
import type { JsonObject, JsonValue } from '@deepseek-ai/dsh-llm'
import { event, objectOf, objectsOf, textOf } from './json.ts'
import type { CompleteCall, CompleteReply, ReceivedMessage, WireProtocol } from './types.ts'

const finishReasons = {
  stop: 'STOP',
  'tool-calls': 'STOP',
  'max-tokens': 'MAX_TOKENS',
  refusal: 'SAFETY',
}

/** `POST …/models/<model>:streamGenerateContent`. */
export const googleProtocol: WireProtocol = {
  serves: (path) => path.endsWith(':streamGenerateContent'),
  read(body, path) {
    return {
      model: /models\/(.*):/.exec(path)?.[1] ?? '',
      system: textOf(objectOf(body.systemInstruction).parts),
      messages: objectsOf(body.contents).flatMap(messagesOf),
      tools: objectsOf(body.tools).flatMap((tool) =>
        objectsOf(tool.functionDeclarations).map(({ name }) => textOf(name)),
      ),
    }
  },
  head(reply) {
    const { reasoning, deltas } = reply
    return [
      ...(reasoning === undefined ? [] : [chunk(reply, [{ text: reasoning, thought: true }])]),
      ...deltas.map((text) => chunk(reply, [{ text }])),
    ]
  },
  tail(reply) {
    const candidate = { content: { role: 'model', parts: [] } }
    return [
      ...reply.calls.map((call) => chunk(reply, [callPart(call)])),
      event({
        responseId: reply.id,
        candidates: [{ ...candidate, finishReason: finishReasons[reply.finish] }],
        usageMetadata: usageOf(reply),
      }),
    ]
  },
  failure: (status, message) => ({ error: { code: status, message, status: nameOf(status) } }),
  overload: () => event({ error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }),
}

/** Function responses travel inside a user content; each is a message of its own here. */
function messagesOf({ role, parts }: JsonObject): ReceivedMessage[] {
  if (role === 'model') return [{ role: 'assistant', text: textOf(parts) }]
  const results = objectsOf(parts).filter((part) => part.functionResponse !== undefined)
  const rest = objectsOf(parts).filter((part) => part.functionResponse === undefined)
  return [
    ...results.map((part) => ({ role: 'tool' as const, text: resultOf(part) })),
    ...(rest.length === 0 ? [] : [{ role: 'user' as const, text: textOf(rest) }]),
  ]
}

function resultOf(part: JsonObject): string {
  // Clients differ in where they put what the tool said.
  const { content, output, error } = objectOf(objectOf(part.functionResponse).response)
  return textOf(content ?? output ?? error)
}

function chunk({ id }: CompleteReply, parts: JsonValue): string {
  return event({ responseId: id, candidates: [{ content: { role: 'model', parts } }] })
}

function callPart({ callId, name, input, signature }: CompleteCall): JsonObject {
  return {
    functionCall: { id: callId, name, args: parsedOf(input) },
    ...(signature !== undefined && { thoughtSignature: signature }),
  }
}

function parsedOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    // Not JSON, as the test wants it.
    return text
  }
}

function usageOf({ usage }: CompleteReply): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens = 0 } = usage
  return {
    promptTokenCount: inputTokens,
    candidatesTokenCount: outputTokens - reasoningTokens,
    thoughtsTokenCount: reasoningTokens,
    cachedContentTokenCount: cachedInputTokens,
    totalTokenCount: inputTokens + outputTokens,
  }
}

function nameOf(status: number): string {
  const names: Record<number, string> = { 401: 'UNAUTHENTICATED', 429: 'RESOURCE_EXHAUSTED' }
  return names[status] ?? (status >= 500 ? 'UNAVAILABLE' : 'INVALID_ARGUMENT')
}
