/** A seam with children that do exactly what a test says. */
import { getEventListeners } from 'node:events'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { ModelRequest } from '@deepseek-ai/dsh-llm'
import {
  type Answer,
  bootYml,
  scriptedModel,
  type TestContextOptions,
} from '@deepseek-ai/dsh-testkit'
import { z } from 'zod'
import type {
  RunLimits,
  SubagentProvider,
  SubagentResult,
  SubagentRun,
  SubagentRunContext,
  SubagentStartRequest,
} from '../src/index.ts'

export interface SeamOptions extends TestContextOptions {
  readonly limits?: Partial<RunLimits>
  /** Default: always says `hello`. */
  readonly model?: Answer
  /** Whether the spawn backend is loaded; default: no. */
  readonly hasSpawn?: boolean
}

/** Boots host core and seam from yml, with one model. */
export async function bootSeam({
  limits = {},
  model = () => 'hello',
  hasSpawn = false,
  ...options
}: SeamOptions = {}): Promise<Context> {
  const ctx = await bootYml(
    `
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
  config: ${JSON.stringify(limits)}
${hasSpawn ? "- name: '@deepseek-ai/dsh-subagent-spawn'" : ''}
`,
    options,
  )
  ctx.llm.registerAdapter(scriptedModel(model))
  return ctx
}

/** A top-level agent; disposed with its context. */
export function createParent(ctx: Context): Agent {
  return ctx.agents.create({ cwd: '/' }).agent
}

/** A child whose end the test decides. */
export interface StubRun {
  readonly request: SubagentStartRequest
  readonly context: SubagentRunContext
  /** The reasons of all cancels, in order. */
  readonly cancels: (string | undefined)[]
  disposals: number
  readonly settle: (result: Partial<SubagentResult>) => void
  readonly fail: (error: unknown) => void
}

export interface StubOptions extends Partial<SubagentProvider> {
  /** Runs inside `start`, before there is a run; may throw. */
  readonly onStart?: (request: SubagentStartRequest, context: SubagentRunContext) => void
  /** Default: settles as `aborted`. */
  readonly onCancel?: (run: StubRun, reason: string | undefined) => void
  /** Default: nothing. */
  readonly onDispose?: (run: StubRun) => Promise<void>
  /** Further members of each run. */
  readonly extras?: (run: StubRun) => Partial<SubagentRun>
}

export interface StubProvider extends SubagentProvider {
  readonly runs: StubRun[]
  /** The child that was started last. */
  readonly last: () => StubRun
}

/** Makes a provider named `stub` that can do nothing unless told. */
export function createStub(options: StubOptions = {}): StubProvider {
  const { onStart, onCancel, onDispose, extras, ...overrides } = options
  const runs: StubRun[] = []
  return {
    name: 'stub',
    capabilities: { outputSchema: true, depthLimit: true, toolFilter: true },
    inheritsParentContext: false,
    runs,
    last: () => {
      const run = runs.at(-1)
      if (run === undefined) throw new Error('no child was started')
      return run
    },
    start: (request, context) => {
      onStart?.(request, context)
      const { promise, resolve, reject } = Promise.withResolvers<SubagentResult>()
      const run: StubRun = {
        request,
        context,
        cancels: [],
        disposals: 0,
        settle: (result) => resolve({ output: [], stopReason: 'completed', ...result }),
        fail: reject,
      }
      runs.push(run)
      return {
        id: context.childId,
        result: promise,
        cancel: (reason) => {
          run.cancels.push(reason)
          if (onCancel === undefined) run.settle({ stopReason: 'aborted' })
          else onCancel(run, reason)
        },
        dispose: async () => {
          run.disposals += 1
          await onDispose?.(run)
        },
        ...extras?.(run),
      }
    },
    ...overrides,
  }
}

/** The text of an output. */
export function textOf({ output }: Pick<SubagentResult, 'output'>): string {
  return output.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

/** An output of one text. */
export function textOutput(text: string): SubagentResult['output'] {
  return [{ type: 'text', text }]
}

/** How many listeners the events of a context have, all together. */
export function countListeners(ctx: Context): number {
  const hooks = ctx.root.events._hooks
  return Object.values(hooks).reduce((sum, listeners) => sum + listeners.length, 0)
}

/** How many listeners wait for the abort of a signal. */
export function abortListenersOf(signal: AbortSignal): number {
  return getEventListeners(signal, 'abort').length
}

/** The text of the last user message. */
export function promptOf({ messages }: ModelRequest): string {
  const message = messages.findLast(({ role }) => role === 'user')
  const [block] = message?.content ?? []
  return block?.type === 'text' ? block.text : ''
}

/**
 * A tool through which scripted models delegate to `spawn`.
 * @param extra members of the request; the tool passes its signal unless they say otherwise.
 */
export function registerDelegate(ctx: Context, extra: Partial<SubagentStartRequest> = {}): void {
  ctx.tools.register({
    name: 'delegate',
    description: 'delegates',
    parameters: z.object({ prompt: z.string() }),
    parallel: true,
    execute: async ({ prompt }, { agent, callId, signal }) => {
      const parent = ctx.agents.get(agent.id)
      if (parent === undefined) throw new Error('no such agent')
      const request = { prompt, parent, callId, signal, ...extra }
      const run = ctx.subagents.start('spawn', request)
      try {
        const result = await run.result
        return `${result.stopReason}: ${textOf(result)}`
      } finally {
        await run.dispose()
      }
    },
  })
}
