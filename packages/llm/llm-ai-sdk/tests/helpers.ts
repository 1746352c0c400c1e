/** What the tests of this package share. */
import type { Context } from '@deepseek-ai/cordis'
import type {
  AssistantContent,
  Failure,
  FinishReason,
  Message,
  ModelRequest,
  StreamChunk,
  Usage,
} from '@deepseek-ai/dsh-llm'
import { bootYml, type ModelServer, type TestContextOptions } from '@deepseek-ai/dsh-testkit'
import type { Config, ProviderName } from '../src/index.ts'

/** A model name that each provider's package knows the abilities of. */
export const modelNames: Record<ProviderName, string> = {
  deepseek: 'deepseek-v4-pro',
  'openai-compatible': 'local-model',
  openai: 'gpt-5',
  anthropic: 'claude-sonnet-4-5',
  google: 'gemini-3-pro-preview',
}

export const everyProvider = Object.keys(modelNames) as ProviderName[]

/** The key of every test; no message may hold it. */
export const apiKey = 'sk-very-secret-key'

/** Boots the seam and one adapter, which serves the provider's model from `server`. */
export function bootAdapter(
  server: Pick<ModelServer, 'baseURL'>,
  config: Partial<Config> & Pick<Config, 'provider'>,
  options: TestContextOptions = {},
): Promise<Context> {
  const full = {
    baseURL: server.baseURL,
    apiKey,
    models: [{ name: modelNames[config.provider], images: true }],
    maxRetries: 2,
    retryBaseDelayMs: 1,
    retryMaxDelayMs: 5,
    ...config,
  }
  const yml = `
- name: '@deepseek-ai/dsh-llm'
- name: '@deepseek-ai/dsh-llm-ai-sdk'
  config: ${JSON.stringify(full)}
`
  return bootYml(yml, options)
}

/** The lines of all warnings from now on; exporters get none unless they ask for their level. */
export function collectWarnings(ctx: Context): string[] {
  const warnings: string[] = []
  ctx.logger.exporter({
    levels: { default: 2 },
    export: ({ type, args }) => {
      if (type === 'warn') warnings.push(args.join(' '))
    },
  })
  return warnings
}

/** A request with one user message. */
export function createRequest(overrides: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'local-model',
    system: 'be brief',
    messages: [userMessage('hello')],
    tools: [],
    signal: new AbortController().signal,
    sessionId: 'session-1',
    ...overrides,
  }
}

export function userMessage(text: string): Message {
  return { role: 'user', content: [{ type: 'text', text }] }
}

export function resultMessage(callId: string, text: string, isError = false): Message {
  const content = [{ type: 'text' as const, text }]
  return {
    role: 'tool',
    content: [{ type: 'tool-result', callId, name: 'look', content, isError }],
  }
}

export const lookTool = {
  name: 'look',
  description: 'looks at a thing',
  parameters: {
    type: 'object',
    properties: { at: { type: 'string' } },
    required: ['at'],
  },
}

/** A reply as the agent loop would log it. */
export interface Reply {
  readonly content: AssistantContent
  readonly usage?: Usage
  readonly finish?: FinishReason
  readonly error?: Failure
}

/** Streams a request to its end, and joins the chunks. */
export async function ask(ctx: Context, request: Partial<ModelRequest>): Promise<Reply> {
  const chunks: StreamChunk[] = []
  for await (const chunk of ctx.llm.registry.stream(createRequest(request))) chunks.push(chunk)
  return replyOf(chunks)
}

/** Joins the deltas as the agent loop does: a block grows until one of another kind comes. */
export function replyOf(chunks: readonly StreamChunk[]): Reply {
  const content: AssistantContent[number][] = []
  const reply: { usage?: Usage; finish?: FinishReason; error?: Failure } = {}
  for (const chunk of chunks) {
    switch (chunk.type) {
      case 'text-delta':
      case 'reasoning-delta':
        grow(content, chunk)
        break
      case 'tool-call':
        content.push(chunk)
        break
      case 'usage':
        reply.usage = chunk.usage
        break
      case 'finish':
        reply.finish = chunk.reason
        if (chunk.error !== undefined) reply.error = chunk.error
        break
    }
  }
  return {
    content: content.filter((block) => block.type !== 'text' || block.text !== ''),
    ...reply,
  }
}

function grow(
  content: AssistantContent[number][],
  chunk: Extract<StreamChunk, { type: 'text-delta' | 'reasoning-delta' }>,
): void {
  const last = content.at(-1)
  if (chunk.type === 'text-delta') {
    if (last?.type === 'text') content.splice(-1, 1, { ...last, text: last.text + chunk.text })
    else content.push({ type: 'text', text: chunk.text })
    return
  }
  const { text, metadata } = chunk
  const before = last?.type === 'reasoning' ? last : undefined
  if (before !== undefined) content.pop()
  content.push({
    type: 'reasoning',
    text: (before?.text ?? '') + text,
    ...((metadata ?? before?.metadata) && { metadata: metadata ?? before?.metadata }),
  })
}
