/** Subagent backend: drives any agent that speaks the Agent Client Protocol, one process per run. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import {
  SubagentError,
  type SubagentProvider,
  type SubagentStartRequest,
} from '@deepseek-ai/dsh-subagent'
import type { Config } from './config.ts'
import { Conversation } from './conversation.ts'
import { AgentPool } from './pool.ts'
import { startAcpRun } from './run.ts'

export { Config, type PoolLimits } from './config.ts'
export type { PermissionPolicy } from './permission.ts'

export const name = 'subagent-acp'
export const inject = ['subagents']

export function apply(ctx: Context, config: Config): void {
  const { baseUrl } = ctx
  const folder = baseUrl === undefined ? process.cwd() : fileURLToPath(new URL('.', baseUrl))
  const settings = resolved(config, folder)
  const pool = createPool(ctx, settings)
  ctx.subagents.registerProvider(createAcpProvider(settings, pool))
  if (pool === undefined) return
  ctx.effect(() => {
    // Without a folder of its own it is the first run that tells where agents work.
    if (settings.cwd !== undefined) pool.fill(settings.cwd)
    return () => pool.dispose()
  }, 'subagent-acp.pool')
}

function createPool({ logger }: Context, config: Config): AgentPool | undefined {
  if (config.pool === undefined) return undefined
  const start = (cwd: string): Conversation => new Conversation(config, cwd)
  return new AgentPool({ ...config.pool, start, warn: (message) => logger.warn(message) })
}

/** Children in processes of their own, which keep no start-time promise: they are not ours. */
function createAcpProvider(config: Config, pool?: AgentPool): SubagentProvider {
  return {
    name: config.providerName,
    capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
    inheritsParentContext: false,
    start: (request, context) => {
      refuseOptions(config.providerName, request)
      const { cwd = request.parent.cwd } = config
      return startAcpRun({ config, cwd, request, context, pool })
    },
  }
}

/** With absolute paths; an empty yml value arrives as null and counts as omitted. */
function resolved(config: Config, folder: string): Config {
  const { command, cwd, authMethod, model, mode, pool, ...rest } = config
  return {
    ...rest,
    // Else the parent's workspace, which an agent may write to, could hold the program.
    command: command.includes('/') ? resolve(folder, command) : command,
    cwd: cwd == null ? undefined : resolve(folder, cwd),
    authMethod: authMethod ?? undefined,
    model: model ?? undefined,
    mode: mode ?? undefined,
    pool: pool ?? undefined,
  }
}

function refuseOptions(provider: string, { agentOptions = {} }: SubagentStartRequest): void {
  const [key] = Object.entries(agentOptions).find(([, value]) => value !== undefined) ?? []
  if (key === undefined) return
  throw new SubagentError(
    'INVALID_REQUEST',
    `subagent provider "${provider}" cannot take agentOptions "${key}": its agent is set up where it is loaded (model, mode, args, env)`,
  )
}
