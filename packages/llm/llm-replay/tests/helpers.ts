/** Runs of parents and children, recorded from a script or replayed from a fixture, as readable logs. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import { violationsOf } from '@deepseek-ai/dsh-invariants'
import type { Message } from '@deepseek-ai/dsh-llm'
import type { Session, SessionEvent, SessionId } from '@deepseek-ai/dsh-session'
import {
  type Answer,
  bootYml,
  collectErrors,
  gate,
  scriptedModel,
  type ScriptedReply,
  temporaryFolder,
  type TestContextOptions,
  waitFor,
} from '@deepseek-ai/dsh-testkit'
import { expect } from 'vitest'
import { z } from 'zod'

/** What is asked of a parent, and how the model answers while it is recorded. */
export interface Scenario {
  readonly prompts: readonly string[]
  readonly script: Answer
  /** Deepest allowed depth of a child; default 3. */
  readonly maxDepth?: number
  /** The order in which calls of the tool `wait` are let go, by their `name`. */
  readonly order?: readonly string[]
}

/** A run that has ended. */
export interface Run {
  readonly sessions: readonly Session[]
  /** The logs of all sessions, by lineage, without times and random ids. */
  readonly story: string
}

/** The path of a fixture of this package. */
export function fixturePath(name: string): string {
  return fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url))
}

/** Records a scenario from its script. @returns the run and the fixture. */
export async function record(scenario: Scenario): Promise<Run & { readonly fixture: string }> {
  const path = join(await temporaryFolder(), 'fixture.json')
  const ctx = await boot({ mode: 'record', fixture: path })
  ctx.llm.registerAdapter(scriptedModel(scenario.script))
  const run = await play(ctx, scenario)
  await ctx.fiber.dispose()
  return { ...run, fixture: await readFile(path, 'utf8') }
}

/** Replays a scenario from a fixture; its script is not asked. */
export async function replay(fixture: string, scenario: Omit<Scenario, 'script'>): Promise<Run> {
  const ctx = await boot({ mode: 'replay', fixture })
  const errors = collectErrors(ctx)
  const run = await play(ctx, scenario)
  await unload(ctx)
  expect(errors).toEqual([])
  return run
}

/** Unloads the plugin alone: the log ends with the context, and would not hear what it tells. */
export async function unload(ctx: Context): Promise<void> {
  const entry = [...ctx.loader.entries()].find(
    ({ options }) => options.name === '@deepseek-ai/dsh-llm-replay',
  )
  if (entry?.fiber === undefined) throw new Error('the plugin is not loaded')
  await entry.fiber.dispose()
}

/** Boots host core, both in-process backends, the plugin, and more entries of yml. */
export async function boot(
  config: { readonly mode: string; readonly fixture: string },
  { entries = '', ...options }: TestContextOptions & { readonly entries?: string } = {},
): Promise<Context> {
  const yml = `
- name: '@deepseek-ai/dsh-llm-replay'
  config: ${JSON.stringify(config)}
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-subagent-fork'
${entries}`
  return bootYml(yml, options)
}

export async function play(
  ctx: Context,
  { prompts, maxDepth = 3, order = [] }: Omit<Scenario, 'script'>,
): Promise<Run> {
  const sessions: Session[] = []
  ctx.on('session/created', ({ session }) => void sessions.push(session))
  const letGo = registerWait(ctx)
  registerDelegate(ctx, maxDepth)
  const { agent } = ctx.agents.create({ cwd: '/', options: { model: 'scripted' } })
  for (const prompt of prompts) {
    const turn = agent.send(prompt)
    if (order.length > 0 && prompt === prompts.at(-1)) await letGo(order, sessions)
    await turn
  }
  for (const session of sessions) expect(violationsOf(session.events())).toEqual([])
  return { sessions, story: storyOf(sessions) }
}

/**
 * A tool that ends when it is let go. @returns a function that, once all of `order` wait, lets them
 * go one after another, each when the session of the one before has ended its turn.
 */
function registerWait(ctx: Context) {
  const waiting = new Map<string, { id: SessionId; open: () => void }>()
  ctx.tools.register({
    name: 'wait',
    description: 'waits',
    parameters: z.object({ name: z.string() }),
    execute: async ({ name }, { agent }) => {
      const held = gate()
      waiting.set(name, { id: agent.id, open: () => held.open() })
      await held.opened
      return `${name} waited`
    },
  })
  return async (order: readonly string[], sessions: readonly Session[]): Promise<void> => {
    await waitFor('all wait', () => order.every((name) => waiting.has(name)))
    for (const name of order) {
      const held = waiting.get(name)
      held?.open()
      const session = sessions.find(({ id }) => id === held?.id)
      await waitFor(`${name} is done`, () => session?.lastTurnEnd !== undefined)
    }
  }
}

/** A tool that delegates, and cancels its child as soon as it has written `until`. */
export function registerDelegate(ctx: Context, maxDepth = 3): void {
  ctx.tools.register({
    name: 'delegate',
    description: 'delegates',
    parameters: z.object({
      provider: z.string(),
      prompt: z.string(),
      until: z.string().optional(),
    }),
    parallel: true,
    execute: async ({ provider, prompt, until }, { agent, callId, signal }) => {
      const parent = ctx.agents.get(agent.id) as Agent
      const { depthLimit } = ctx.subagents.getProvider(provider)?.capabilities ?? {}
      const limit = depthLimit === true ? { maxDepth } : {}
      const run = ctx.subagents.start(provider, { prompt, parent, callId, signal, ...limit })
      const unfollow = ctx.on('agent/delta', ({ agent: { id }, text }) => {
        if (id === run.id && until !== undefined && text.includes(until)) run.cancel('enough')
      })
      const { stopReason, output, diagnostic } = await run.result
      unfollow()
      await run.dispose()
      return [stopReason, diagnostic, textOf(output)].filter(Boolean).join(': ')
    },
  })
}

export function textOf(content: readonly object[]): string {
  return content.map((block) => ('text' in block ? String(block.text) : '')).join('')
}

/** The last prompt of a conversation. */
export function promptOf({ messages }: { readonly messages: readonly Message[] }): string {
  return textOf(messages.findLast(({ role }) => role === 'user')?.content ?? [])
}

/** Whether the model is asked to go on after tool results. */
export function isAnswered({ messages }: { readonly messages: readonly Message[] }): boolean {
  return messages.at(-1)?.role === 'tool'
}

/** The texts of the results that answer the last message. */
export function resultsOf({ messages }: { readonly messages: readonly Message[] }): string[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages
    .slice(last + 1)
    .flatMap((message) => (message.role === 'tool' ? [textOf(message.content[0].content)] : []))
}

interface Delegation {
  readonly callId: string
  readonly provider: 'spawn' | 'fork' | 'acp'
  readonly prompt: string
  readonly until?: string
}

/** A reply that delegates; each call has an id of its own, as a model would give it. */
export function delegating(...delegations: readonly Delegation[]): ScriptedReply {
  return {
    calls: delegations.map(({ callId, ...input }) => ({ name: 'delegate', callId, input })),
  }
}

/** The logs of all sessions by lineage, a line for each event; parallel ones in any order. */
function storyOf(sessions: readonly Session[]): string {
  const names = namesOf(sessions)
  const stories = sessions.map((session) => {
    const first = session.header.seedLength
    const seed = first === undefined ? '' : ` after ${first} events of its parent`
    const lines = Array.from(session.events(first), (event) => `  ${sentenceOf(event)}\n`)
    return `${names.get(session.id)}${seed}\n${lines.join('')}`
  })
  let story = stories.toSorted().join('\n')
  for (const [id, name] of names) story = story.replaceAll(id, name)
  return story
}

function namesOf(sessions: readonly Session[]): Map<SessionId, string> {
  const names = new Map<SessionId, string>()
  for (const { header } of sessions) {
    const parent = header.parentSession && names.get(header.parentSession)
    names.set(
      header.id,
      parent === undefined ? 'parent' : `${parent} > ${header.origin?.callId ?? '?'}`,
    )
  }
  return names
}

function sentenceOf({ type, data }: SessionEvent): string {
  switch (type) {
    case 'turn/start':
      return `turn ${data.turn} of ${data.model}`
    case 'user/message':
    case 'context/message':
      return `user: ${oneLine(data.content)}`
    case 'assistant/message': {
      const calls = data.content.flatMap((block) =>
        block.type === 'tool-call'
          ? [`${block.name}#${block.callId} ${JSON.stringify(block.input)}`]
          : [],
      )
      const { inputTokens, outputTokens } = data.usage
      const text = [oneLine(data.content), ...calls].filter((part) => part !== '').join(' ')
      return `model: ${text} (${data.finish}, ${inputTokens} + ${outputTokens} tokens)`
    }
    case 'tool/call':
      return `call ${data.callId}`
    case 'tool/result':
      return `result ${data.callId}${data.isError ? ` ${data.code}` : ''}: ${oneLine(data.content)}`
    case 'step/start':
      return `step ${data.step}`
    case 'step/end':
      return `step ${data.step} ends`
    case 'turn/end':
      return `turn ends: ${data.reason}`
  }
}

function oneLine(content: readonly object[]): string {
  return textOf(content).replaceAll('\n', ' / ')
}
