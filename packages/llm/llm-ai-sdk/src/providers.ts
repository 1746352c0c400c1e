/** The provider packages of the AI SDK, each imported when it is first used. */
import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'

export const providerNames = [
  'deepseek',
  'openai-compatible',
  'openai',
  'anthropic',
  'google',
] as const

export type ProviderName = (typeof providerNames)[number]

export const reasoningEfforts = [
  'none',
  'minimal',
  'low',
  'medium',
  'high',
  'xhigh',
  'max',
] as const

export type ReasoningEffort = (typeof reasoningEfforts)[number]

/** What a provider package needs for one request. */
export interface Connection {
  readonly apiKey: string
  readonly baseURL: string
  readonly headers: Record<string, string>
  readonly fetch: typeof globalThis.fetch
}

/** What is peculiar to a provider. */
export interface Provider {
  /** Absent where there is no usual endpoint. */
  readonly baseURL?: string
  /** The variable that usually holds its key; this package does not read it. */
  readonly keyVariable: string
  /** Whether requests without a key make no sense. */
  readonly needsKey: boolean
  /** Whether a tool result may hold images; else they follow in a user message. */
  readonly takesResultImages: boolean
  /** Imports the package and makes the model. */
  load(model: string, connection: Connection): Promise<LanguageModelV4>
  /** Options of each request beyond the standard ones. */
  options(sessionId: string, effort: ReasoningEffort | undefined): SharedV4ProviderOptions
}

/** Marks a message whose end the provider shall cache; other providers ignore it. */
export const cacheMarker: SharedV4ProviderOptions = {
  anthropic: { cacheControl: { type: 'ephemeral' } },
}

/** Base URLs are always given, for some packages read theirs from the environment. */
export const providers: Record<ProviderName, Provider> = {
  deepseek: {
    baseURL: 'https://api.deepseek.com',
    keyVariable: 'DEEPSEEK_API_KEY',
    needsKey: true,
    takesResultImages: true,
    async load(model, connection) {
      const { createDeepSeek } = await import('@ai-sdk/deepseek')
      return createDeepSeek(connection)(model)
    },
    options: () => ({}),
  },
  'openai-compatible': {
    keyVariable: 'OPENAI_API_KEY',
    needsKey: false,
    takesResultImages: false,
    async load(model, connection) {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      // The name is the key of the metadata in logs, so it stays the same for every endpoint.
      return createOpenAICompatible({ ...connection, name: 'compatible', includeUsage: true })(
        model,
      )
    },
    options: () => ({}),
  },
  openai: {
    baseURL: 'https://api.openai.com/v1',
    keyVariable: 'OPENAI_API_KEY',
    needsKey: true,
    takesResultImages: true,
    async load(model, connection) {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI(connection)(model)
    },
    options: (sessionId, effort) => ({
      openai: {
        // The log holds the reasoning in encrypted form: nothing is kept on the server.
        store: false,
        promptCacheKey: sessionId,
        ...(isReasoning(effort) && { reasoningSummary: 'auto' }),
      },
    }),
  },
  anthropic: {
    baseURL: 'https://api.anthropic.com/v1',
    keyVariable: 'ANTHROPIC_API_KEY',
    needsKey: true,
    takesResultImages: true,
    async load(model, connection) {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return createAnthropic(connection)(model)
    },
    options: () => ({}),
  },
  google: {
    baseURL: 'https://generativelanguage.googleapis.com/v1beta',
    keyVariable: 'GOOGLE_GENERATIVE_AI_API_KEY',
    needsKey: true,
    takesResultImages: true,
    async load(model, connection) {
      const { createGoogle } = await import('@ai-sdk/google')
      return createGoogle(connection)(model)
    },
    options: (_, effort) => ({
      google: isReasoning(effort) ? { thinkingConfig: { includeThoughts: true } } : {},
    }),
  },
}

function isReasoning(effort: ReasoningEffort | undefined): boolean {
  return effort !== undefined && effort !== 'none'
}
