/** The agent loop: turns of steps, each one model request and the tool calls that it caused. */
import type { Context } from '@deepseek-ai/cordis'
import type { AgentDriver } from '@deepseek-ai/dsh-agent'
import { createNotify } from '@deepseek-ai/dsh-llm'
import z from '@deepseek-ai/schemastery'
import { LoopAgent } from './agent.ts'
import type { LoopServices } from './types.ts'

export const name = 'agent-loop'
export const inject = ['llm', 'sessions', 'tools', 'systemPrompt', 'agents']

export interface Config {
  /** How long a cancelled turn waits for tools that clean up, in ms. */
  abortGraceMs: number
  /** How long disposing an agent waits for tools that ignored the cancel, in ms. */
  stopGraceMs: number
}

export const Config: z<Partial<Config>, Config> = z.object({
  abortGraceMs: z.natural().max(60_000).default(1000),
  stopGraceMs: z.natural().max(600_000).default(15_000),
})

export function apply(ctx: Context, config: Config): void {
  ctx.agents.registerDriver(createDriver(ctx, config))
}

/** Drives agents with the services of `ctx`, resolved once. */
export function createDriver(ctx: Context, { abortGraceMs, stopGraceMs }: Config): AgentDriver {
  const { logger } = ctx
  const services: LoopServices = {
    models: ctx.llm.registry,
    sessions: ctx.sessions.table,
    toolTable: ctx.tools.table,
    runTool: ctx.tools.run,
    prompt: ctx.systemPrompt.sections,
    notify: createNotify(ctx),
    warn: (message, error) => logger.warn(new Error(message, { cause: error })),
    abortGraceMs,
    stopGraceMs,
  }
  return { create: (spec) => new LoopAgent(ctx, spec, services) }
}
