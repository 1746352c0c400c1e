/** The provider that spawn and fork are two kinds of. */
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { SessionPrefix } from '@deepseek-ai/dsh-session'
import type { SubagentProvider } from '@deepseek-ai/dsh-subagent'
import { type InProcessServices, startInProcessRun } from './driver.ts'

/** Resolves what in-process runs need, once. */
export function inProcessServices(ctx: Context): InProcessServices {
  const { logger } = ctx
  return {
    agents: ctx.agents.registry,
    tools: ctx.tools.table,
    warn: (message) => logger.warn(message),
  }
}

/**
 * Children that are agents of this process.
 * @param seedOf what a child starts with of its parent's log; absent: children start from nothing.
 */
export function createInProcessProvider(
  providerName: string,
  services: InProcessServices,
  seedOf?: (parent: Agent) => SessionPrefix | undefined,
): SubagentProvider {
  return {
    name: providerName,
    capabilities: { outputSchema: true, depthLimit: true, toolFilter: true },
    inheritsParentContext: seedOf !== undefined,
    start: (request, run) => {
      const seed = seedOf?.(request.parent)
      return startInProcessRun(services, { provider: providerName, request, run, seed })
    },
  }
}
