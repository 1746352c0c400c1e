import type { Context } from '@deepseek-ai/cordis'
import type { JsonValue, Message, ModelRequest, StreamChunk } from '@deepseek-ai/dsh-llm'
import { bootYml } from '@deepseek-ai/dsh-testkit'

type Files = Readonly<Record<string, string>>

/** Boots the core and a scripted model with the playbook of this yml. */
export function bootRules(playbook: string): Promise<Context> {
  return bootConfig('{ playbook: playbook.yml }', { 'playbook.yml': playbook })
}

/** Boots the core and a scripted model with this config, in yml. */
export function bootConfig(config: string, files: Files = {}): Promise<Context> {
  return bootYml(ymlWith(config), { files })
}

/** Boots a config that must fail; gives the error with which it does, as text. */
export async function failureOfBoot(config: string, files: Files = {}): Promise<string> {
  const ctx = await bootYml(ymlWith(config), { files, expectErrors: /./ })
  const entry = [...ctx.loader.entries()].find(({ options }) => options.id === 'model')
  return Promise.resolve(entry?.fiber?.await()).then(() => 'it did not fail', String)
}

export function failureOfPlaybook(playbook: string, file = 'playbook.yml'): Promise<string> {
  return failureOfBoot(`{ playbook: ${file} }`, { [file]: playbook })
}

export function createRequest(overrides: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'scripted',
    system: '',
    messages: [user('hello')],
    tools: [],
    signal: new AbortController().signal,
    sessionId: 'session-1',
    ...overrides,
  }
}

export function user(text: string): Message {
  return { role: 'user', content: [{ type: 'text', text }] }
}

export function assistant(text: string): Message {
  return { role: 'assistant', content: [{ type: 'text', text }] }
}

export function result(name: string, text: string): Message {
  return {
    role: 'tool',
    content: [
      { type: 'tool-result', callId: 'c', name, content: [{ type: 'text', text }], isError: false },
    ],
  }
}

export async function chunksOf(
  ctx: Context,
  overrides: Partial<ModelRequest> = {},
): Promise<StreamChunk[]> {
  const chunks: StreamChunk[] = []
  for await (const chunk of ctx.llm.registry.stream(createRequest(overrides))) chunks.push(chunk)
  return chunks
}

/** The whole text of a reply, or its error. */
export async function textOf(ctx: Context, overrides: Partial<ModelRequest>): Promise<string> {
  let text = ''
  for (const chunk of await chunksOf(ctx, overrides)) {
    if (chunk.type === 'text-delta') text += chunk.text
    if (chunk.type === 'finish' && chunk.error !== undefined) text += chunk.error.message
  }
  return text
}

/** The inputs of the calls of a reply. */
export async function inputsOf(
  ctx: Context,
  overrides: Partial<ModelRequest>,
): Promise<JsonValue[]> {
  const chunks = await chunksOf(ctx, overrides)
  return chunks.flatMap((chunk) => (chunk.type === 'tool-call' ? [chunk.input] : []))
}

function ymlWith(config: string): string {
  return `
- name: '@deepseek-ai/dsh-agent-core'
- id: model
  name: '@deepseek-ai/dsh-llm-scripted'
  config: ${config}
`
}
