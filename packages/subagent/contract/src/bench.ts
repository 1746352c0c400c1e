/** A booted composition with a backend, and agents of ours that do what their prompt asks for. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context, Fiber } from '@deepseek-ai/cordis'
import type { Agent, AgentHandle, CreateAgentOptions } from '@deepseek-ai/dsh-agent'
import type { ModelRequest } from '@deepseek-ai/dsh-llm'
import type { SubagentResult, SubagentRun, SubagentStartRequest } from '@deepseek-ai/dsh-subagent'
import {
  bootYml,
  type ScriptedModel,
  scriptedModel,
  type ScriptedReply,
  temporaryFolder,
  type TestContextOptions,
  waitFor,
} from '@deepseek-ai/dsh-testkit'
import { expect } from 'vitest'
import { z } from 'zod'
import {
  type Behaviour,
  behaviourOf,
  type ContractBackend,
  type LoadedBackend,
  promptFor,
} from './backend.ts'
import { untilExists } from './files.ts'

/** A child that never ends by itself. */
export const hanging = { does: 'hang', text: 'at it' } as const
/** One that ignores every polite request to end, too. */
export const deaf = { does: 'hang', text: 'at it', isDeaf: true } as const
/** How long a dispose may take at most, in ms: longer than any ladder of signals in a test. */
export const disposeLimitMs = 10_000

/** What a test of the suite works with. */
export interface Bench extends LoadedBackend {
  readonly ctx: Context
  readonly backend: ContractBackend
  /** The temporary folder in which all agents work. */
  readonly folder: string
  /** A top-level agent. */
  readonly parent: Agent
  /** The model of every agent in this process. */
  readonly model: ScriptedModel
  /** A file that is not there; a child that waits for it goes on after {@link release}. */
  readonly gatePath: string
  readonly release: () => Promise<void>
  /** How often the tool `probe` has run. */
  readonly probes: () => number
  readonly createParent: (options?: Partial<CreateAgentOptions>) => AgentHandle
  readonly start: (behaviour: Behaviour, extra?: Partial<SubagentStartRequest>) => SubagentRun
  /** Starts, and waits until the child has said something. */
  readonly startTalking: (
    behaviour: Behaviour,
    extra?: Partial<SubagentStartRequest>,
  ) => Promise<SubagentRun>
  /** Starts, waits for the result and disposes. */
  readonly delegate: (
    behaviour: Behaviour,
    extra?: Partial<SubagentStartRequest>,
  ) => Promise<SubagentResult>
}

/** Boots host core, seam, tool and backend through the Loader. */
export async function createBench(
  backend: ContractBackend,
  options: TestContextOptions = {},
): Promise<Bench> {
  const { providerName } = backend
  const ctx = await bootYml(
    `
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: ${providerName} }
`,
    options,
  )
  const folder = await temporaryFolder()
  const model = scriptedModel(answerTo)
  ctx.llm.registerAdapter(model)
  const probes = registerProbe(ctx)
  const loaded = await backend.load(ctx, folder)
  const createParent: Bench['createParent'] = (more = {}) =>
    ctx.agents.create({ cwd: folder, ...more })
  const parent = createParent().agent
  const start: Bench['start'] = (behaviour, extra = {}) =>
    ctx.subagents.start(providerName, { prompt: promptFor(behaviour), parent, ...extra })
  const delegate: Bench['delegate'] = async (behaviour, extra) => {
    const run = start(behaviour, extra)
    try {
      return await run.result
    } finally {
      await run.dispose()
    }
  }
  const gatePath = join(folder, 'gate')
  const release = (): Promise<void> => writeFile(gatePath, '')
  const talking = new Set<string>()
  ctx.on('subagent/update', ({ kind, runId }) => {
    if (kind === 'text') talking.add(runId)
  })
  const startTalking: Bench['startTalking'] = async (behaviour, extra) => {
    const run = start(behaviour, extra)
    const state = ctx.subagents.runs().find(({ id }) => id === run.id)
    await waitFor('the text of the child', () => talking.has(state?.runId ?? ''))
    return run
  }
  const common = { ctx, backend, folder, parent, model, gatePath, release, probes }
  return { ...loaded, ...common, createParent, start, startTalking, delegate }
}

/** Loads a yml entry, as the only one that is added to a running composition. */
export async function loadEntry(
  ctx: Context,
  name: string,
  config: Readonly<Record<string, unknown>> = {},
): Promise<Fiber> {
  const id = await ctx.loader.create({ name, config })
  await ctx.loader.await()
  const { fiber } = ctx.loader.resolve(id)
  if (fiber === undefined) throw new Error(`the entry "${name}" did not load`)
  await fiber.await()
  return fiber
}

/** Counts the children that are agents of this context. */
export function countAgents(ctx: Context): Pick<LoadedBackend, 'started' | 'alive'> {
  let started = 0
  ctx.on('agent/created', ({ agent }) => {
    if (isChild(agent)) started += 1
  })
  return { started: () => started, alive: () => ctx.agents.list().filter(isChild).length }
}

function isChild({ session }: Agent): boolean {
  return session.header.parentSession !== undefined
}

/** How many listeners the context has, over all events. */
export function countListeners(ctx: Context): number {
  return Object.values(ctx.events._hooks).reduce((sum, hooks) => sum + hooks.length, 0)
}

/** The result, within the time that counts as prompt. @throws when it takes longer. */
export function promptly<T>(settling: Promise<T>, limitMs = 1000): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(reject, limitMs, new Error(`not settled within ${limitMs} ms`))
  return Promise.race([settling, promise]).finally(() => clearTimeout(timer))
}

/** Expects that a refused start has left nothing at all. */
export function expectNothing({ ctx, parent, started, alive }: Bench): void {
  expect(started()).toBe(0)
  expect(alive()).toBe(0)
  expect(ctx.subagents.runs()).toEqual([])
  expect(ctx.agents.list()).toEqual([parent])
  expect(ctx.sessions.list()).toEqual([parent.session])
}

/** The text of an output. */
export function textOf({ output }: Pick<SubagentResult, 'output'>): string {
  return output.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

function registerProbe(ctx: Context): () => number {
  let count = 0
  ctx.tools.register({
    name: 'probe',
    description: 'counts its calls',
    parameters: z.object({}),
    execute: async () => {
      count += 1
      return 'probed'
    },
  })
  return () => count
}

/** The model that plays the part written in the last user message. */
function answerTo({ messages }: ModelRequest): ScriptedReply {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const block = messages[last]?.content[0]
  const behaviour = behaviourOf(block?.type === 'text' ? block.text : '')
  const step = messages.slice(last).filter(({ role }) => role === 'assistant').length
  return replyFor(behaviour, step)
}

function replyFor(behaviour: Behaviour, step: number): ScriptedReply {
  switch (behaviour.does) {
    case 'answer': {
      const { text, after } = behaviour
      return after === undefined ? { text } : { text, until: untilExists(after) }
    }
    case 'messages': {
      const { texts, tool = 'probe' } = behaviour
      const text = texts[step] ?? ''
      return step < texts.length - 1 ? { text, calls: [{ name: tool }] } : { text }
    }
    case 'stop':
      return { text: behaviour.text, finish: behaviour.reason }
    case 'fail': {
      const { text, message } = behaviour
      return { text, finish: 'error', error: { code: 'MODEL_FAILED', message } }
    }
    case 'hang': {
      const { text, isDeaf = false } = behaviour
      return isDeaf ? { text, isDeaf } : { text, until: new Promise(() => {}) }
    }
    case 'hand-in': {
      const input = behaviour.values[step]
      return input === undefined ? { text: '' } : { calls: [{ name: 'structured_output', input }] }
    }
    case 'delegate': {
      const { prompt, text } = behaviour
      const input = { description: 'a part', prompt }
      return step === 0 ? { calls: [{ name: 'subagent', input }] } : { text }
    }
  }
}
