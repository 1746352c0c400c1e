/** Subagent backend: a fresh child agent in this process, without any inherited conversation. */
import type { Context } from '@deepseek-ai/cordis'
import type { SubagentProvider } from '@deepseek-ai/dsh-subagent'
import z from '@deepseek-ai/schemastery'
import { type InProcessServices, startInProcessRun } from './driver.ts'

export { depthOf } from '@deepseek-ai/dsh-subagent'
export * from './driver.ts'

export const name = 'subagent-spawn'
export const inject = ['subagents', 'agents', 'tools']

export interface Config {
  /** Name on `ctx.subagents`. */
  providerName: string
}

export const Config: z<Partial<Config>, Config> = z.object({
  providerName: z.string().default('spawn'),
})

export function apply(ctx: Context, { providerName }: Config): void {
  ctx.subagents.registerProvider(createSpawnProvider(providerName, inProcessServices(ctx)))
}

/** Children that start from nothing. */
export function createSpawnProvider(
  providerName: string,
  services: InProcessServices,
): SubagentProvider {
  return {
    name: providerName,
    capabilities: { outputSchema: true, depthLimit: true, toolFilter: true },
    inheritsParentContext: false,
    start: (request, run) => startInProcessRun(services, { provider: providerName, request, run }),
  }
}

/** Resolves what in-process runs need, once. */
export function inProcessServices(ctx: Context): InProcessServices {
  const { logger } = ctx
  return {
    agents: ctx.agents.registry,
    tools: ctx.tools.table,
    warn: (message) => logger.warn(message),
  }
}
