/** Subagent backend for tests: children that follow a script from the config instead of a model. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '@deepseek-ai/cordis'
import type { JsonValue } from '@deepseek-ai/dsh-llm'
import type { SubagentStopReason } from '@deepseek-ai/dsh-subagent'
import z from '@deepseek-ai/schemastery'
import { createMockProvider, type MockProvider, type MockScript } from './mock.ts'

export * from './mock.ts'

export const name = 'subagent-mock'
export const inject = ['subagents']

export interface Config {
  /** Name on `ctx.subagents`. */
  providerName: string
  /** What each child says; `{{prompt}}` stands for what it was asked. */
  reply: string
  /** How each child ends. */
  stopReason: SubagentStopReason
  /** What went wrong, for a stop reason other than `completed`. */
  diagnostic?: string
  /** The value that comes with a completed result. */
  structured?: JsonValue
  /** Whether the provider claims this capability. */
  outputSchema: boolean
  /** Whether the provider claims this capability. */
  depthLimit: boolean
  /** Whether the provider claims this capability. */
  toolFilter: boolean
  /** What the provider says of the parent's finished turns. */
  inheritsParentContext: boolean
  /** How long a child works after it has streamed its reply, in ms. */
  delayMs: number
  /** Whether children never end by themselves. */
  hang: boolean
  /** Whether children ignore a cancel. */
  deaf: boolean
  /** Which rule of the seam the provider breaks. */
  failure: 'none' | 'throws-at-start' | 'rejects-result'
}

export const Config: z<Partial<Config>, Config> = z.object({
  providerName: z.string().default('mock'),
  reply: z.string().default('done'),
  stopReason: z.string().default('completed') as unknown as z<SubagentStopReason>,
  diagnostic: z.string(),
  structured: z.any(),
  outputSchema: z.boolean().default(false),
  depthLimit: z.boolean().default(false),
  toolFilter: z.boolean().default(false),
  inheritsParentContext: z.boolean().default(false),
  delayMs: z.natural().default(0),
  hang: z.boolean().default(false),
  deaf: z.boolean().default(false),
  failure: z.union(['none', 'throws-at-start', 'rejects-result'] as const).default('none'),
})

export function apply(ctx: Context, config: Config): void {
  ctx.subagents.registerProvider(providerOf(config))
}

function providerOf(config: Config): MockProvider {
  const { providerName, outputSchema, depthLimit, toolFilter, inheritsParentContext } = config
  return createMockProvider({
    name: providerName,
    capabilities: { outputSchema, depthLimit, toolFilter },
    inheritsParentContext,
    script: scriptOf(config),
    isDeaf: () => config.deaf,
    ...(config.failure === 'throws-at-start' && {
      startError: new Error('the mock does not start'),
    }),
  })
}

function scriptOf(config: Config): MockScript {
  const { reply, stopReason, diagnostic, structured, delayMs, hang, failure } = config
  return async ({ request, signal, say }) => {
    say(reply.replaceAll('{{prompt}}', () => request.prompt))
    if (delayMs > 0) await delay(delayMs, undefined, { signal })
    if (hang) await new Promise(() => {})
    if (failure === 'rejects-result') throw new Error('the mock has a fault')
    return { stopReason, diagnostic, structured }
  }
}
