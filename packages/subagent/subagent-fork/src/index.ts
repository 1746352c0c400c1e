/** Subagent backend: a child agent in this process that has seen its parent's finished turns. */
import type { Context } from '@deepseek-ai/cordis'
import type { SubagentProvider } from '@deepseek-ai/dsh-subagent'
import {
  createInProcessProvider,
  inProcessServices,
  type InProcessServices,
} from '@deepseek-ai/dsh-subagent-spawn'
import z from '@deepseek-ai/schemastery'

export const name = 'subagent-fork'
export const inject = ['subagents', 'agents', 'tools']

export interface Config {
  /** Name on `ctx.subagents`. */
  providerName: string
}

export const Config: z<Partial<Config>, Config> = z.object({
  providerName: z.string().default('fork'),
})

export function apply(ctx: Context, { providerName }: Config): void {
  ctx.subagents.registerProvider(createForkProvider(providerName, inProcessServices(ctx)))
}

/** Children that start with the parent's log up to its last `turn/end`, shared, not copied. */
function createForkProvider(providerName: string, services: InProcessServices): SubagentProvider {
  return createInProcessProvider(providerName, services, ({ session }) => session.completedTurns())
}
