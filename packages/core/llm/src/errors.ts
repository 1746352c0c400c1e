/** The error that every package derives from, and the codes of the model seam. */
import { inspect } from 'node:util'
import type { Failure } from './types.ts'

const brand = Symbol.for('dsh.error')

/** A failure with a stable code; the message names the thing, the value and the remedy. */
export class HarnessError<Code extends string = string> extends Error {
  override readonly name: string = 'HarnessError'
  readonly [brand] = true
  readonly code: Code

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Tells a {@link HarnessError} by its brand: `instanceof` fails across copies of this package. Never throws. */
export function isHarnessError(value: unknown): value is HarnessError {
  return codeOf(value) !== undefined
}

/** What was thrown, as data; `code` serves for what carries none. Never throws. */
export function failureOf(error: unknown, code: string): Failure {
  return { code: codeOf(error) ?? code, message: messageOf(error) }
}

/** The text of anything that was thrown; never empty for an error, and never throws. */
export function messageOf(error: unknown): string {
  try {
    if (typeof error === 'string') return error
    if (!(error instanceof Error)) return inspect(error, { depth: 1 })
    // The type promises a text; whoever threw may not have kept it.
    const text: unknown = error.message || error.name || 'Error'
    return typeof text === 'string' ? text : inspect(text, { depth: 1 })
  } catch {
    return 'an error that cannot be read'
  }
}

/** A text in double quotes for a message, cut where it is long. */
export function quote(text: string): string {
  return `"${text.length > maxQuoted ? `${text.slice(0, maxQuoted)}…` : text}"`
}

const maxQuoted = 100

function codeOf(value: unknown): string | undefined {
  try {
    if (typeof value !== 'object' || value === null || !(brand in value)) return undefined
    const { code } = value as { code?: unknown }
    return typeof code === 'string' ? code : undefined
  } catch {
    // A getter or a proxy that throws.
    return undefined
  }
}

/** Codes of the model seam; all but the first two reach a caller inside a finish chunk. */
export type LlmErrorCode =
  | 'DUPLICATE_ADAPTER'
  | 'DUPLICATE_MODEL'
  | 'UNKNOWN_MODEL'
  /** The API denies access: no key, a wrong one, no right to the model, no credit. */
  | 'MODEL_AUTH'
  /** Too many requests, also after the retries. */
  | 'MODEL_RATE_LIMIT'
  /** The API cannot be reached, or is out of order. */
  | 'MODEL_UNAVAILABLE'
  /** The API sent nothing for too long. */
  | 'MODEL_TIMEOUT'
  /** The API refuses the request as it is. */
  | 'MODEL_REQUEST'
  /** Whatever else a model or its adapter failed with. */
  | 'MODEL_FAILED'
  /** The conversation is longer than the model takes. */
  | 'CONTEXT_OVERFLOW'

/** A failure of the model seam. */
export class LlmError extends HarnessError<LlmErrorCode> {
  override readonly name: string = 'LlmError'
}
