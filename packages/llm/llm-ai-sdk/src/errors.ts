/** The error of this package, and what a provider's error means in the codes of the model seam. */
import {
  HarnessError,
  isHarnessError,
  LlmError,
  type LlmErrorCode,
  messageOf,
} from '@deepseek-ai/dsh-llm'

/** The models are none, or one is named twice or not at all, or a provider lacks its URL. */
export type AiSdkErrorCode = 'INVALID_CONFIG'

/** A config that the schema alone cannot refuse. */
export class AiSdkError extends HarnessError<AiSdkErrorCode> {
  override readonly name: string = 'AiSdkError'
}

/** An answer that is none; {@link diagnose} says where it came from. */
export class UnreadableAnswerError extends Error {
  override readonly name = 'UnreadableAnswerError'
  /** What it says itself, to be shown behind the rest. */
  readonly said: string

  constructor(message: string, said = '') {
    super(message)
    this.said = said
  }
}

/** What an error message needs to know of its request. */
export interface Scene {
  readonly adapterName: string
  readonly model: string
  /** Where the requests go. */
  readonly baseURL: string
  /** Name of the variable that usually holds the key. */
  readonly keyVariable: string
  /** Removes secrets from a text. */
  readonly scrub: (text: string) => string
}

/** An error in the seam's terms. */
export interface Diagnosis {
  readonly error: LlmError
  readonly isRetryable: boolean
  /** What the server asked to wait, in ms. */
  readonly retryAfterMs?: number
}

/** The union of what the provider packages throw and put into their streams. */
interface ProviderError {
  readonly name?: unknown
  readonly message?: unknown
  readonly statusCode?: unknown
  readonly code?: unknown
  readonly type?: unknown
  readonly responseBody?: unknown
  readonly responseHeaders?: Readonly<Record<string, string>>
  readonly isRetryable?: unknown
  readonly error?: SentError
  /** What the SDK could not make sense of. */
  readonly value?: { readonly error?: SentError }
}

type SentError = string | { readonly message?: unknown } | null | undefined

const maxDetail = 400
const overflow =
  /context[ _-]?(length|window|size|limit)|maximum context|prompt is too long|input (is )?too long|token count .*exceeds|too many (input )?tokens|request_too_large/i
const networkCode = /^(E[A-Z]{4,}|EAI_AGAIN|UND_ERR_[A-Z_]+)$/
const badPrompt = /^AI_(UnsupportedFunctionality|InvalidPrompt|InvalidArgument)Error$/

/** Explains an error; a typed one passes as it is. */
export function diagnose(thrown: unknown, scene: Scene): Diagnosis {
  if (isHarnessError(thrown)) return keep(thrown as LlmError)
  const answer = causesOf(thrown).find((cause) => cause instanceof UnreadableAnswerError)
  if (answer !== undefined) return unreadable(answer, scene)
  const error: ProviderError = typeof thrown === 'object' && thrown !== null ? thrown : {}
  const status = statusOf(error)
  if (status !== undefined && status >= 400) return refused(status, error, scene)
  const lost = networkTextOf(thrown) ?? cutTextOf(error)
  if (lost !== undefined || error.isRetryable === true) {
    const text = bounded(lost ?? asText(error.message), scene)
    const where = `${scene.baseURL} for model "${scene.model}"`
    const message = `lost the connection to ${where}: ${text}; check "baseURL" and the network`
    return { error: create('MODEL_UNAVAILABLE', message, scene), isRetryable: true }
  }
  const code = badPrompt.test(asText(error.name)) ? 'MODEL_REQUEST' : 'MODEL_FAILED'
  const text = bounded(wordsOf(error) ?? messageOf(thrown), scene)
  return {
    error: create(code, `failed for model "${scene.model}": ${text}`, scene),
    isRetryable: false,
  }
}

function unreadable({ message, said }: UnreadableAnswerError, scene: Scene): Diagnosis {
  const where = `${scene.baseURL} for model "${scene.model}"`
  const text = `got ${message} from ${where}; check "baseURL"${said}`
  return { error: create('MODEL_FAILED', bounded(text, scene), scene), isRetryable: false }
}

/** A function that replaces the secrets, longest first, wherever they occur in a text. */
export function createScrubber(secrets: readonly (string | undefined)[]): (text: string) => string {
  const known = secrets
    .flatMap((secret) => (secret === undefined ? [] : [secret, ...secret.split(/\s+/)]))
    .filter((secret) => secret.length >= 4)
    .toSorted((a, b) => b.length - a.length)
  return (text) => known.reduce((scrubbed, secret) => scrubbed.replaceAll(secret, '***'), text)
}

type StatusCode = Exclude<
  LlmErrorCode,
  'DUPLICATE_ADAPTER' | 'DUPLICATE_MODEL' | 'UNKNOWN_MODEL' | 'MODEL_TIMEOUT' | 'MODEL_FAILED'
>

const verbs: Record<StatusCode, string> = {
  MODEL_AUTH: 'was denied access to',
  MODEL_RATE_LIMIT: 'is over the rate limit of',
  MODEL_UNAVAILABLE: 'could not be served by',
  MODEL_REQUEST: 'was refused by',
  CONTEXT_OVERFLOW: 'sent more than the context window of',
}

function refused(status: number, error: ProviderError, scene: Scene): Diagnosis {
  const detail = detailOf(error, scene)
  const told = `${detail} ${asText(error.code)} ${asText(error.type)}`
  const code = codeOf(status, told)
  const text = `${verbs[code]} model "${scene.model}" (${status}): ${detail}`
  const retryAfterMs = retryAfterOf(error.responseHeaders)
  const isSpent = /insufficient_quota/.test(`${told} ${asText(error.responseBody)}`)
  return {
    error: create(code, `${text}${remedyOf(code, status, scene)}`, scene),
    isRetryable: (code === 'MODEL_RATE_LIMIT' || code === 'MODEL_UNAVAILABLE') && !isSpent,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

function codeOf(status: number, told: string): StatusCode {
  if (status === 401 || status === 402 || status === 403) return 'MODEL_AUTH'
  if (status === 429) return 'MODEL_RATE_LIMIT'
  if (status === 413) return 'CONTEXT_OVERFLOW'
  if (status === 408 || status >= 500) return 'MODEL_UNAVAILABLE'
  return overflow.test(told) ? 'CONTEXT_OVERFLOW' : 'MODEL_REQUEST'
}

function remedyOf(code: StatusCode, status: number, { keyVariable }: Scene): string {
  if (code === 'MODEL_AUTH') return `; check "apiKey" (usually from ${keyVariable}) and the account`
  return status === 404 ? '; check "baseURL" and "models"' : ''
}

function keep(error: LlmError): Diagnosis {
  return { error, isRetryable: error.code === 'MODEL_UNAVAILABLE' }
}

/** The cause is left out on purpose: it holds the request, and may hold secrets. */
function create(code: LlmErrorCode, text: string, { adapterName, scrub }: Scene): LlmError {
  return new LlmError(code, scrub(`model adapter "${adapterName}" ${text}`))
}

/** The HTTP status; an error inside a stream has it as its code, or only says what it is. */
function statusOf({ statusCode, code, type }: ProviderError): number | undefined {
  if (typeof statusCode === 'number') return statusCode
  const status = Number(code)
  if (status >= 400 && status <= 599) return status
  const words = `${asText(code)} ${asText(type)}`
  if (/rate_?limit/i.test(words)) return 429
  if (/server_error|overloaded|unavailable|api_error/i.test(words)) return 503
  if (/authentication|api_key/i.test(words)) return 401
  return /invalid_request|context_length/i.test(words) ? 400 : undefined
}

/** The provider's own words; the whole body where the message says no more than the status. */
function detailOf({ message, responseBody }: ProviderError, scene: Scene): string {
  const text = asText(message)
  const body = asText(responseBody)
  const isToldInBody = body === '' || body.includes(JSON.stringify(text).slice(1, -1))
  return bounded(isToldInBody && text !== '' ? text : body || 'no reason was given', scene)
}

function asText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** One line of bounded length; scrubbed before the cut, which could leave half a secret. */
function bounded(text: string, { scrub }: Scene): string {
  const line = scrub(text).replaceAll(/\s+/g, ' ').trim().toWellFormed()
  if (line.length <= maxDetail) return line.replace(/\.$/, '')
  return `${line.slice(0, maxDetail).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** What the network said, when the error or one of its causes is a lost connection. */
function networkTextOf(thrown: unknown): string | undefined {
  for (const cause of causesOf(thrown)) {
    const code = 'code' in cause ? asText(cause.code) : ''
    if (networkCode.test(code)) return cause.message || code
  }
  return undefined
}

/** An error and what it was caused by, as deep as it makes sense to look. */
function causesOf(thrown: unknown): Error[] {
  const causes: Error[] = []
  for (let cause = thrown; cause instanceof Error && causes.length < 8; cause = cause.cause) {
    causes.push(cause)
  }
  return causes
}

/** The server's own words in an error that it sent inside a stream, also in one that the SDK does not know. */
function wordsOf({ message, error, value }: ProviderError): string | undefined {
  for (const sent of [value?.error, error]) {
    const words = typeof sent === 'string' ? sent : asText(sent?.message)
    if (words !== '') return words
  }
  return asText(message) || undefined
}

/** One package tells a stream that ended too early as an error of its own. */
function cutTextOf({ message }: ProviderError): string | undefined {
  const text = asText(message)
  return text.includes('ended without a finish') ? text : undefined
}

/** Source: RFC 9110 section 10.2.3, and the finer `retry-after-ms` of some providers. */
function retryAfterOf(headers: Readonly<Record<string, string>> = {}): number | undefined {
  const fine = Number(headers['retry-after-ms'] ?? Number.NaN)
  if (fine >= 0) return fine
  const text = headers['retry-after']
  if (text === undefined) return undefined
  const seconds = Number(text)
  const wait = Number.isNaN(seconds) ? Date.parse(text) - Date.now() : seconds * 1000
  return Number.isNaN(wait) ? undefined : Math.max(0, wait)
}
