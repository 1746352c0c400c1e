/** Boots compositions with the tool through the real Loader. */
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { JsonValue } from '@deepseek-ai/dsh-llm'
import {
  createMockProvider,
  type MockOptions,
  type MockProvider,
} from '@deepseek-ai/dsh-subagent-mock'
import { bootYml, scriptedModel, type TestContextOptions } from '@deepseek-ai/dsh-testkit'
import type { ToolResult } from '@deepseek-ai/dsh-tools'

export const core = `
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
`

/** A yml entry; a text stands for the config as yml. */
export function entry(
  name: string,
  config: string | Readonly<Record<string, unknown>> = {},
): string {
  const text = typeof config === 'string' ? config : JSON.stringify(config)
  return `- name: '@deepseek-ai/dsh-${name}'\n  config: ${text}\n`
}

export interface Booted {
  readonly ctx: Context
  readonly parent: Agent
  readonly mock: MockProvider
}

/** The core, the tool on provider `mock`, then a mock that does what `options` say. */
export async function boot(
  config: Readonly<Record<string, unknown>> = {},
  options: MockOptions = {},
  contextOptions: TestContextOptions = {},
): Promise<Booted> {
  const yml = core + entry('tool-subagent', { provider: 'mock', ...config })
  const ctx = await bootYml(yml, contextOptions)
  ctx.llm.registerAdapter(scriptedModel([]))
  const mock = createMockProvider(options)
  ctx.subagents.registerProvider(mock)
  return { ctx, parent: ctx.agents.create({ cwd: '/' }).agent, mock }
}

/** Calls the tool as a turn would. */
export function call(
  { ctx, parent }: Pick<Booted, 'ctx' | 'parent'>,
  input: JsonValue = { description: 'look around', prompt: 'go' },
  { name = 'subagent', callId = 'call-1', signal = new AbortController().signal } = {},
): Promise<ToolResult> {
  return ctx.tools.execute({ agent: parent, callId, name, input, signal })
}

export function textOf({ content }: Pick<ToolResult, 'content'>): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

/** How many listeners the context has, over all events. */
export function countListeners(ctx: Context): number {
  const hooks = Object.values(ctx.root.events._hooks)
  return hooks.reduce((sum, listeners) => sum + listeners.length, 0)
}

/** The fiber of the entry whose package name ends so. */
export function fiberOf(ctx: Context, name: string): NonNullable<ReturnType<typeof findEntry>> {
  const found = findEntry(ctx, name)
  if (found === undefined) throw new Error(`no entry "${name}"`)
  return found
}

function findEntry(ctx: Context, name: string) {
  return [...ctx.loader.entries()].find(({ options }) => options.name.endsWith(name))?.fiber
}
