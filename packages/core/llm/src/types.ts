/** The vocabulary of the model seam: content, requests and stream chunks. */

/** Any value that JSON can carry. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

export interface JsonObject {
  readonly [key: string]: JsonValue
}

export interface TextBlock {
  readonly type: 'text'
  readonly text: string
}

export interface ReasoningBlock {
  readonly type: 'reasoning'
  readonly text: string
  /** What the adapter must send back with the block, for example a signature. */
  readonly metadata?: JsonObject
}

export interface ImageBlock {
  readonly type: 'image'
  /** For example `image/png`. */
  readonly mediaType: string
  /** Base64. */
  readonly data: string
}

export interface ToolCallBlock {
  readonly type: 'tool-call'
  readonly callId: string
  readonly name: string
  /** The parsed arguments; the raw text when the model wrote no valid JSON. */
  readonly input: JsonValue
  /** What the adapter must send back with the call, for example a thought signature. */
  readonly metadata?: JsonObject
}

export interface ToolResultBlock {
  readonly type: 'tool-result'
  readonly callId: string
  readonly name: string
  readonly content: ToolResultContent
  readonly isError: boolean
}

export type ContentBlock = TextBlock | ReasoningBlock | ImageBlock | ToolCallBlock | ToolResultBlock
export type UserContent = readonly (TextBlock | ImageBlock)[]
export type AssistantContent = readonly (TextBlock | ReasoningBlock | ToolCallBlock)[]
export type ToolResultContent = readonly (TextBlock | ImageBlock)[]

/** One message of the conversation; every tool result is a message of its own, in call order. */
export type Message =
  | { readonly role: 'user'; readonly content: UserContent }
  | { readonly role: 'assistant'; readonly content: AssistantContent }
  | { readonly role: 'tool'; readonly content: readonly [ToolResultBlock] }

/** A tool as a model sees it. */
export interface ToolSchema {
  readonly name: string
  readonly description: string
  /** A JSON Schema whose root is an object. */
  readonly parameters: JsonObject
}

export interface ModelRequest {
  readonly model: string
  /** Empty when there is none. */
  readonly system: string
  /** Grows after the stream has ended: an adapter that keeps it must copy it. */
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSchema[]
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly signal: AbortSignal
  /** The session that asks; stable over its life, so it can serve as a cache key. */
  readonly sessionId: string
}

/** Tokens; `inputTokens` includes the cached ones and `outputTokens` the reasoning. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens?: number
  readonly reasoningTokens?: number
}

export type FinishReason = 'stop' | 'tool-calls' | 'max-tokens' | 'refusal' | 'aborted' | 'error'

/** A failure as data: it goes into logs and results, so it never holds a secret or a stack. */
export interface Failure {
  readonly code: string
  readonly message: string
}

export type StreamChunk =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly text: string; readonly metadata?: JsonObject }
  | ({ readonly type: 'tool-call' } & Omit<ToolCallBlock, 'type'>)
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: FinishReason; readonly error?: Failure }

/** A model that an adapter serves. */
export interface ModelInfo {
  readonly name: string
  /** Whether it takes {@link ImageBlock}s; absent means no. */
  readonly images?: boolean
}

/** Speaks to one LLM API. */
export interface ModelAdapter {
  readonly name: string
  readonly models: readonly ModelInfo[]
  /**
   * Streams one reply; the last chunk is its only finish. It honours `request.signal` promptly.
   * It may throw instead of finishing with `error`: {@link ModelRegistry.stream} makes one of both.
   */
  stream(request: ModelRequest): AsyncIterable<StreamChunk>
}
