/** Makes of what a model or its adapter gave what a log can hold, so that no message is lost over it. */
import {
  type Failure,
  type FinishReason,
  type JsonObject,
  type JsonValue,
  messageOf,
  type StreamChunk,
  type Usage,
} from '@deepseek-ai/dsh-llm'
import { freezeJson } from '@deepseek-ai/dsh-session'

/** The arguments of a call, absent ones being none; those that no log can hold become their text, as invalid JSON does. */
export function loggableInput(input: unknown): JsonValue {
  try {
    return frozen(input === undefined ? {} : input)
  } catch {
    return textOf(input)
  }
}

/** What an adapter wants back, less the parts that no log can hold; absent when it is no object. */
export function loggableMetadata(metadata: unknown): JsonObject | undefined {
  if (metadata === undefined) return undefined
  const kept = partsOf(metadata, metadataDepth)
  const isObject = typeof kept === 'object' && kept !== null && !Array.isArray(kept)
  return isObject ? (kept as JsonObject) : undefined
}

/** Tokens; a number that is none counts for nothing. */
export function loggableUsage(usage: Partial<Usage> | undefined): Usage {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usage ?? {}
  return {
    inputTokens: isCount(inputTokens) ? inputTokens : 0,
    outputTokens: isCount(outputTokens) ? outputTokens : 0,
    ...(isCount(cachedInputTokens) && { cachedInputTokens }),
    ...(isCount(reasoningTokens) && { reasoningTokens }),
  }
}

/** How a reply ended; a reason that nobody knows is an error. */
export function loggableFinish({ reason, error }: Extract<StreamChunk, { type: 'finish' }>): {
  readonly finish: FinishReason
  readonly error: Failure | undefined
} {
  if (Object.hasOwn(finishReasons, reason)) return { finish: reason, error }
  const message = `the model adapter ended its reply with the unknown reason "${messageOf(reason)}"`
  return { finish: 'error', error: { code: 'MODEL_FAILED', message } }
}

const finishReasons: Record<FinishReason, true> = {
  stop: true,
  'tool-calls': true,
  'max-tokens': true,
  refusal: true,
  aborted: true,
  error: true,
}

/** Metadata is keyed by provider, and then by what it is. */
const metadataDepth = 2

function partsOf(value: unknown, depth: number): JsonValue | undefined {
  try {
    return frozen(value)
  } catch {
    if (depth === 0 || typeof value !== 'object' || value === null) return undefined
    const parts = Object.entries(value).map(([key, part]) => [key, partsOf(part, depth - 1)])
    return Object.fromEntries(parts.filter(([, part]) => part !== undefined)) as JsonObject
  }
}

/** Checked as deep as it will stand in the data of the event. */
function frozen(value: unknown): JsonValue {
  return freezeJson({ content: { block: { value } } }).content.block.value as JsonValue
}

function textOf(input: unknown): string {
  try {
    const text: unknown = JSON.stringify(input, (_, value: unknown) =>
      typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
    )
    if (typeof text === 'string') return text
  } catch {
    // Nested too deep, circular, or of a kind that JSON does not know.
  }
  return messageOf(input)
}

/** Sums and limits are made of these. */
function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
