/** Model adapter over the AI SDK's provider packages: five APIs, one stream of chunks. */
import type { Context } from '@deepseek-ai/cordis'
import type { ModelInfo } from '@deepseek-ai/dsh-llm'
import z from '@deepseek-ai/schemastery'
import { createAdapter, type Settings } from './adapter.ts'
import { AiSdkError } from './errors.ts'
import {
  type ProviderName,
  providerNames,
  providers,
  type ReasoningEffort,
  reasoningEfforts,
} from './providers.ts'

export { AiSdkError, type AiSdkErrorCode } from './errors.ts'
export type { ProviderName, ReasoningEffort } from './providers.ts'

export const name = 'llm-ai-sdk'
export const inject = ['llm']

export interface Config {
  /** Which API is spoken, and so which package of the AI SDK is loaded. */
  provider: ProviderName
  /** Name on `ctx.llm`; the provider's when absent. */
  adapterName?: string
  /** Where the API lives; the provider's usual place when absent. */
  baseURL?: string
  /** The key; nothing is read from the environment. An empty text counts as absent. */
  apiKey?: string
  /** Sent with every request. */
  headers?: Record<string, string>
  /** Models to serve, by the provider's own names; `images` for those that take images. */
  models: (string | ModelInfo)[]
  /** How much the models reason before they answer; their own default when absent. */
  reasoningEffort?: ReasoningEffort
  /** How long the server may send no byte before the request ends, in ms. */
  idleTimeoutMs: number
  /** How often a request is tried again before anything of a reply has arrived. */
  maxRetries: number
  /** The wait before the first retry, in ms; it doubles with each. */
  retryBaseDelayMs: number
  /** The longest wait before a retry, whatever the server asks for, in ms. */
  retryMaxDelayMs: number
}

type Optional = 'idleTimeoutMs' | 'maxRetries' | 'retryBaseDelayMs' | 'retryMaxDelayMs'

export const Config: z<Omit<Config, Optional> & Partial<Pick<Config, Optional>>, Config> = z.object(
  {
    provider: z.union([...providerNames]).required(),
    adapterName: z.string(),
    baseURL: z.string().pattern(/^https?:\/\/[^/@\s]+(\/\S*)?$/),
    apiKey: z.string().role('secret'),
    headers: z.dict(z.string()).default(undefined as never),
    models: z
      .array(z.union([z.string(), z.object({ name: z.string().required(), images: z.boolean() })]))
      .required(),
    reasoningEffort: z.union([...reasoningEfforts]),
    // Node's own fetch gives up after five minutes of silence.
    idleTimeoutMs: z.natural().min(1).max(290_000).default(180_000),
    maxRetries: z.natural().max(20).default(4),
    retryBaseDelayMs: z.natural().max(60_000).default(500),
    retryMaxDelayMs: z.natural().max(600_000).default(30_000),
  },
)

export function apply(ctx: Context, config: Config): void {
  const { logger } = ctx
  ctx.llm.registerAdapter(createAdapter(settingsOf(config, (message) => logger.warn(message))))
}

function settingsOf(config: Config, warn: Settings['warn']): Settings {
  const { adapterName = config.provider, headers = {}, apiKey, reasoningEffort } = config
  const { idleTimeoutMs, maxRetries, retryBaseDelayMs, retryMaxDelayMs } = config
  const provider = providers[config.provider]
  const baseURL = config.baseURL ?? provider.baseURL
  if (baseURL === undefined) {
    throw invalid(
      `model adapter "${adapterName}" needs a "baseURL", as "${config.provider}" has none`,
    )
  }
  const models = modelsOf(adapterName, config.models)
  return {
    adapterName,
    provider,
    baseURL,
    apiKey,
    headers,
    models,
    reasoningEffort,
    idleTimeoutMs,
    maxRetries,
    retryBaseDelayMs,
    retryMaxDelayMs,
    warn,
  }
}

function modelsOf(adapterName: string, models: Config['models']): ModelInfo[] {
  const infos = models.map((model) => (typeof model === 'string' ? { name: model } : model))
  const names = infos.map((info) => info.name)
  if (names.length === 0) throw invalid(`model adapter "${adapterName}" lists no "models"`)
  const twice = names.find((model, index) => names.indexOf(model) !== index)
  if (twice !== undefined) {
    throw invalid(`model adapter "${adapterName}" lists model "${twice}" twice`)
  }
  if (names.includes(''))
    throw invalid(`model adapter "${adapterName}" lists a model without a name`)
  return infos
}

function invalid(message: string): AiSdkError {
  return new AiSdkError('INVALID_CONFIG', message)
}
