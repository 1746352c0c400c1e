/** What the specs of this package share. */
import { setImmediate as tick } from 'node:timers/promises'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent, CreateAgentOptions } from '@deepseek-ai/dsh-agent'
import { violationsOf } from '@deepseek-ai/dsh-invariants'
import type { ModelAdapter, StreamChunk } from '@deepseek-ai/dsh-llm'
import type { Session, SessionEvent, SessionStore } from '@deepseek-ai/dsh-session'
import {
  bootYml,
  gate,
  scriptedModel,
  type ScriptedModel,
  type TestContextOptions,
} from '@deepseek-ai/dsh-testkit'
import type { Tool, ToolResult } from '@deepseek-ai/dsh-tools'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Config } from '../src/index.ts'

/** Grace times for tests whose tools never end by themselves. */
export const impatient: Partial<Config> = { abortGraceMs: 20, stopGraceMs: 20 }

export type Script = Parameters<typeof scriptedModel>[0]

export interface Host {
  readonly ctx: Context
  readonly model: ScriptedModel
  readonly createAgent: (options?: Partial<CreateAgentOptions>) => Agent
}

/**
 * A context with the whole core, loaded from a yml, and one scripted model. When the test ends,
 * every log of the context must be sound and no rejection may have been left unhandled.
 */
export async function createHost(
  script: Script,
  { config = {}, ...options }: TestContextOptions & { readonly config?: Partial<Config> } = {},
): Promise<Host> {
  const rejections: unknown[] = []
  const onRejection = (reason: unknown): void => void rejections.push(reason)
  process.on('unhandledRejection', onRejection)
  const sessions = new Set<Session>()
  onTestFinished(async () => {
    await tick()
    process.off('unhandledRejection', onRejection)
    expect(rejections).toEqual([])
    for (const session of sessions) expect(violationsOf(session.events())).toEqual([])
  })
  // Long enough that a busy machine never cuts off what heeds its cancel.
  const patient = { abortGraceMs: 60_000, stopGraceMs: 60_000 }
  const ctx = await bootYml(ymlWith({ ...patient, ...config }), options)
  ctx.on('session/created', ({ session }) => void sessions.add(session))
  const model = scriptedModel(script)
  ctx.llm.registerAdapter(model)
  return {
    ctx,
    model,
    createAgent: (overrides) =>
      ctx.agents.create({ cwd: '/work', options: { model: 'scripted' }, ...overrides }).agent,
  }
}

function ymlWith(config: Config): string {
  return `
- id: loop
  name: '@deepseek-ai/dsh-agent-loop'
  config: ${JSON.stringify(config)}
- name: '@deepseek-ai/dsh-invariants'
- name: '@deepseek-ai/dsh-agent'
- name: '@deepseek-ai/dsh-system-prompt'
- name: '@deepseek-ai/dsh-tools'
- name: '@deepseek-ai/dsh-session'
- name: '@deepseek-ai/dsh-llm'
`
}

/** A tool without arguments. */
export function createTool(
  name: string,
  execute: Tool['execute'] = async () => `${name} is done`,
  overrides: Partial<Tool> = {},
): Tool {
  return { name, description: name, parameters: z.looseObject({}), execute, ...overrides }
}

export interface HeldTool {
  readonly tool: Tool
  /** Ids of the calls that began. */
  readonly started: readonly string[]
  readonly release: (callId: string) => void
}

/** A tool that answers when its gate is opened, whatever the signal says. */
export function createHeldTool(name: string, overrides: Partial<Tool> = {}): HeldTool {
  const started: string[] = []
  const gates = new Map<string, ReturnType<typeof gate>>()
  const tool = createTool(
    name,
    async (_, { callId }) => {
      started.push(callId)
      const held = gate()
      gates.set(callId, held)
      await held.opened
      return `${callId} is done`
    },
    overrides,
  )
  return { tool, started, release: (callId) => gates.get(callId)?.open() }
}

/** An adapter that streams what it is given, whatever the signal says. */
export function createAdapter(stream: ModelAdapter['stream'], name = 'custom'): ModelAdapter {
  return { name, models: [{ name }], stream }
}

export async function* streamOf(chunks: readonly StreamChunk[]): AsyncGenerator<StreamChunk> {
  for (const chunk of chunks) yield chunk
}

export function createStore(overrides: Partial<SessionStore> = {}): SessionStore {
  return {
    open: () => {},
    append: () => {},
    flush: async () => {},
    close: async () => {},
    load: () => Promise.reject(new Error('nothing is stored')),
    ...overrides,
  }
}

/** The texts of all warnings from now on; cordis exports none unless the exporter asks for them. */
export function collectWarnings(ctx: Context): string[] {
  const warnings: string[] = []
  ctx.logger.exporter({
    levels: { default: 2 },
    export: ({ type, args }) => {
      if (type === 'warn') warnings.push(args.map(String).join(' '))
    },
  })
  return warnings
}

/** The log as a person would tell it. */
export function storyOf({ session }: Agent): string[] {
  return Array.from(session.events(), sentenceOf)
}

function sentenceOf(event: SessionEvent): string {
  switch (event.type) {
    case 'turn/start':
      return `turn ${event.data.turn}`
    case 'user/message':
    case 'context/message':
      return `user: ${textOf(event.data)}`
    case 'step/start':
      return `step ${event.data.step}`
    case 'assistant/message': {
      const calls = event.data.content.flatMap((block) =>
        block.type === 'tool-call' ? [`${block.name}#${block.callId}`] : [],
      )
      return `model: ${[textOf(event.data), ...calls, `(${event.data.finish})`].join(' ').trim()}`
    }
    case 'tool/call':
      return `call ${event.data.callId}`
    case 'tool/result':
      return `result ${event.data.callId}: ${event.data.code ?? textOf(event.data)}`
    case 'step/end':
      return `step ${event.data.step} ends`
    case 'turn/end':
      return `turn ends: ${event.data.reason}`
  }
}

export function textOf({
  content,
}: Pick<ToolResult, 'content'> | { content: readonly object[] }): string {
  return content
    .map((block) => ('text' in block && typeof block.text === 'string' ? block.text : ''))
    .join('')
}

/** The results of the log, in order: call id, then code or text. */
export function resultsOf(agent: Agent): string[] {
  return storyOf(agent).flatMap((line) => (line.startsWith('result ') ? [line.slice(7)] : []))
}

/** Lets everything that waits for no timer go on as far as it can. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await tick()
}
