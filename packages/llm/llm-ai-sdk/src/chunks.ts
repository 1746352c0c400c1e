/** From the stream parts of the AI SDK to the chunks of the model seam. */
import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider'
import {
  type FinishReason,
  type JsonObject,
  type JsonValue,
  LlmError,
  type StreamChunk,
} from '@deepseek-ai/dsh-llm'

/** Turns the parts of one reply into chunks, part by part. */
export class ReplyReader {
  private readonly metadata = new Map<string, JsonObject>()
  private readonly adapterName: string
  private isReasoning = false
  private hasCalls = false

  constructor(adapterName: string) {
    this.adapterName = adapterName
  }

  /** @throws the error of an `error` part; LlmError for a reply that was not finished. */
  *read(part: LanguageModelV4StreamPart): Generator<StreamChunk, void, void> {
    switch (part.type) {
      case 'text-delta':
        if (part.delta === '') return
        this.isReasoning = false
        yield { type: 'text-delta', text: part.delta }
        return
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        yield* this.reasoning(part)
        return
      case 'tool-call':
        this.isReasoning = false
        this.hasCalls = true
        yield callChunk(part)
        return
      case 'finish':
        yield* usageChunks(part.usage)
        yield { type: 'finish', reason: this.reasonOf(part.finishReason) }
        return
      case 'error':
        throw part.error
      default:
    }
  }

  /** The error of a stream that ended without saying how. */
  cut(): LlmError {
    const what = `model adapter "${this.adapterName}" lost its stream`
    return new LlmError('MODEL_UNAVAILABLE', `${what} before the model had finished`)
  }

  /** Metadata comes in pieces, and is complete only when its block ends. */
  private *reasoning(
    part: Extract<LanguageModelV4StreamPart, { type: `reasoning-${string}`; id: string }>,
  ): Generator<StreamChunk, void, void> {
    // An empty text parts two blocks that follow each other: each has its own metadata.
    if (part.type === 'reasoning-start' && this.isReasoning) yield { type: 'text-delta', text: '' }
    this.isReasoning = true
    const metadata = merged(this.metadata.get(part.id), part.providerMetadata)
    if (metadata !== undefined) this.metadata.set(part.id, metadata)
    if (part.type === 'reasoning-delta' && part.delta !== '') {
      yield { type: 'reasoning-delta', text: part.delta }
    } else if (part.type === 'reasoning-end' && metadata !== undefined) {
      yield { type: 'reasoning-delta', text: '', metadata }
    }
  }

  private reasonOf({ unified, raw }: LanguageModelV4FinishReason): FinishReason {
    switch (unified) {
      case 'stop':
      case 'tool-calls':
        return this.hasCalls ? 'tool-calls' : 'stop'
      case 'length':
        return 'max-tokens'
      case 'content-filter':
        return 'refusal'
      case 'interrupted':
      case 'error':
      case 'other':
        if (raw === undefined) throw this.cut()
        throw new LlmError(
          'MODEL_FAILED',
          `model adapter "${this.adapterName}" got a reply that ended with "${raw}"`,
        )
    }
  }
}

function callChunk(part: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>): StreamChunk {
  const { toolCallId: callId, toolName: name, input, providerMetadata } = part
  const metadata = merged(undefined, providerMetadata)
  return {
    type: 'tool-call',
    callId,
    name,
    input: parsedOf(input),
    ...(metadata !== undefined && { metadata }),
  }
}

function parsedOf(text: string): JsonValue {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    // The model is told what was wrong with it by whoever executes the call.
    return text
  }
}

/** The old metadata with the new in front, less what is null; absent when nothing is left. */
function merged(
  old: JsonObject | undefined,
  fresh: SharedV4ProviderMetadata | undefined,
): JsonObject | undefined {
  let result = old
  for (const [provider, values] of Object.entries(fresh ?? {})) {
    const present = Object.entries(values).filter(
      ([, value]) => value !== null && value !== undefined,
    )
    if (present.length === 0) continue
    const before = result?.[provider] as JsonObject | undefined
    result = {
      ...result,
      [provider]: { ...before, ...(Object.fromEntries(present) as JsonObject) },
    }
  }
  return result
}

function* usageChunks({ inputTokens, outputTokens }: LanguageModelV4Usage): Generator<StreamChunk> {
  if (inputTokens.total === undefined && outputTokens.total === undefined) return
  const { cacheRead } = inputTokens
  const { reasoning } = outputTokens
  yield {
    type: 'usage',
    usage: {
      inputTokens: inputTokens.total ?? 0,
      outputTokens: outputTokens.total ?? 0,
      ...(cacheRead !== undefined && { cachedInputTokens: cacheRead }),
      ...(reasoning !== undefined && { reasoningTokens: reasoning }),
    },
  }
}
