/** The model adapter: one request to its end, tried again while nothing of a reply has arrived. */
import { setTimeout as delay } from 'node:timers/promises'
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  SharedV4Warning,
} from '@ai-sdk/provider'
import {
  LlmError,
  type ModelAdapter,
  type ModelInfo,
  type ModelRequest,
  type StreamChunk,
} from '@deepseek-ai/dsh-llm'
import { ReplyReader } from './chunks.ts'
import { createScrubber, type Diagnosis, diagnose, type Scene } from './errors.ts'
import { createPromptBuilder, type PromptBuilder } from './prompt.ts'
import { type Provider, type ReasoningEffort } from './providers.ts'
import { type Watch, watchRequest } from './watch.ts'

/** A config with every default resolved. */
export interface Settings {
  readonly adapterName: string
  readonly provider: Provider
  readonly baseURL: string
  readonly apiKey: string | undefined
  readonly headers: Record<string, string>
  readonly models: readonly ModelInfo[]
  readonly reasoningEffort: ReasoningEffort | undefined
  readonly idleTimeoutMs: number
  readonly maxRetries: number
  readonly retryBaseDelayMs: number
  readonly retryMaxDelayMs: number
  readonly warn: (message: string) => void
}

/** Makes the adapter. It opens nothing before its first request. */
export function createAdapter(settings: Settings): ModelAdapter {
  return new AiSdkAdapter(settings)
}

class AiSdkAdapter implements ModelAdapter {
  readonly name: string
  readonly models: readonly ModelInfo[]
  private readonly settings: Settings
  private readonly prompts: ReadonlyMap<string, PromptBuilder>
  private readonly scrub: (text: string) => string
  private readonly warned = new Set<string>()

  constructor(settings: Settings) {
    const { adapterName, models, provider, apiKey, headers } = settings
    this.name = adapterName
    this.models = models
    this.settings = settings
    this.prompts = new Map(models.map((info) => [info.name, createPromptBuilder(info, provider)]))
    this.scrub = createScrubber([apiKey, ...Object.values(headers)])
  }

  async *stream(request: ModelRequest): AsyncGenerator<StreamChunk, void, void> {
    const { maxRetries } = this.settings
    for (let attempt = 0; ; attempt += 1) {
      let isStarted = false
      try {
        for await (const chunk of this.tryOnce(request)) {
          isStarted = true
          yield chunk
        }
        return
      } catch (error) {
        if (request.signal.aborted) throw error
        const diagnosis = diagnose(error, this.sceneOf(request.model))
        if (isStarted || !diagnosis.isRetryable) throw diagnosis.error
        if (attempt === maxRetries) throw exhausted(diagnosis.error, maxRetries)
        await this.pause(diagnosis, attempt, request.signal)
      }
    }
  }

  private async *tryOnce(request: ModelRequest): AsyncGenerator<StreamChunk, void, void> {
    const reader = new ReplyReader(this.name)
    const watch = watchRequest(request.signal, this.settings.idleTimeoutMs)
    try {
      for await (const part of this.parts(request, watch)) {
        if (part.type === 'stream-start') this.report(part.warnings)
        yield* reader.read(part)
        if (part.type === 'finish') return
      }
      throw reader.cut()
    } catch (error) {
      throw watch.isSilent() ? this.silence(request.model) : error
    } finally {
      watch.dispose()
    }
  }

  private async *parts(
    request: ModelRequest,
    watch: Watch,
  ): AsyncGenerator<LanguageModelV4StreamPart, void, void> {
    const { provider, baseURL, headers, apiKey = '' } = this.settings
    if (apiKey === '' && provider.needsKey) throw this.missingKey()
    const connection = { apiKey, baseURL, headers, fetch: watch.fetch }
    const model = await provider.load(request.model, connection)
    const { stream } = await watch.until(model.doStream(this.optionsOf(request, watch.signal)))
    const reader = stream.getReader()
    while (true) {
      const { done, value } = await watch.until(reader.read())
      if (done) return
      yield value
    }
  }

  private optionsOf(request: ModelRequest, abortSignal: AbortSignal): LanguageModelV4CallOptions {
    const { provider, reasoningEffort } = this.settings
    const { model, system, messages, tools, maxOutputTokens, temperature, sessionId } = request
    const build = this.prompts.get(model) ?? createPromptBuilder({ name: model }, provider)
    return {
      prompt: build(system, messages),
      abortSignal,
      providerOptions: provider.options(sessionId, reasoningEffort),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(temperature !== undefined && { temperature }),
      ...(reasoningEffort !== undefined && { reasoning: reasoningEffort }),
      ...(tools.length > 0 && {
        tools: tools.map(({ name, description, parameters }) => ({
          type: 'function' as const,
          name,
          description,
          inputSchema: parameters,
        })),
      }),
    }
  }

  private async pause(
    { error, retryAfterMs }: Diagnosis,
    attempt: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { maxRetries, retryBaseDelayMs, retryMaxDelayMs, warn } = this.settings
    const backoff = retryAfterMs ?? (retryBaseDelayMs * 2 ** attempt) / 2
    // The random part keeps children that were refused together from coming back together.
    const jitter = Math.random() * (retryAfterMs === undefined ? backoff : retryBaseDelayMs)
    const waitMs = Math.round(Math.min(retryMaxDelayMs, backoff + jitter))
    warn(`${error.message} (retry ${attempt + 1} of ${maxRetries} in ${waitMs} ms)`)
    await delay(waitMs, undefined, { signal })
  }

  /** Tells once of each setting that the provider cannot honour. */
  private report(warnings: readonly SharedV4Warning[]): void {
    for (const warning of warnings) {
      if (warning.type !== 'unsupported' && warning.type !== 'compatibility') continue
      const { feature, details } = warning
      const message = `model adapter "${this.name}" cannot honour "${feature}"${details === undefined ? '' : `: ${details}`}`
      if (this.warned.has(message)) continue
      this.warned.add(message)
      this.settings.warn(this.scrub(message))
    }
  }

  private sceneOf(model: string): Scene {
    const { baseURL, provider } = this.settings
    const { keyVariable } = provider
    return { adapterName: this.name, model, baseURL, keyVariable, scrub: this.scrub }
  }

  private missingKey(): LlmError {
    const { keyVariable } = this.settings.provider
    return new LlmError(
      'MODEL_AUTH',
      `model adapter "${this.name}" has no key: set "apiKey" in its config, usually from ${keyVariable}`,
    )
  }

  private silence(model: string): LlmError {
    const { idleTimeoutMs } = this.settings
    return new LlmError(
      'MODEL_TIMEOUT',
      `model adapter "${this.name}" heard nothing of model "${model}" for ${idleTimeoutMs} ms (idleTimeoutMs)`,
    )
  }
}

function exhausted({ code, message }: LlmError, maxRetries: number): LlmError {
  return new LlmError(code, maxRetries === 0 ? message : `${message} (after ${maxRetries} retries)`)
}
