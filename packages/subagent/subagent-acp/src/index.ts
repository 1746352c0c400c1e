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
import { startAcpRun } from './run.ts'

export { Config } from './config.ts'
export type { PermissionPolicy } from './permission.ts'

export const name = 'subagent-acp'
export const inject = ['subagents']

export function apply(ctx: Context, config: Config): void {
  const { baseUrl } = ctx
  const folder = baseUrl === undefined ? process.cwd() : fileURLToPath(new URL('.', baseUrl))
  ctx.subagents.registerProvider(createAcpProvider(resolved(config, folder)))
}

/** Children in processes of their own, which keep no start-time promise: they are not ours. */
function createAcpProvider(config: Config): SubagentProvider {
  return {
    name: config.providerName,
    capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
    inheritsParentContext: false,
    start: (request, context) => {
      refuseOptions(config.providerName, request)
      const { cwd = request.parent.cwd } = config
      return startAcpRun({ config, cwd, request, context })
    },
  }
}

/** With absolute paths; an empty yml value arrives as null and counts as omitted. */
function resolved(config: Config, folder: string): Config {
  const { command, cwd, authMethod, model, mode, ...rest } = config
  return {
    ...rest,
    // Else the parent's workspace, which an agent may write to, could hold the program.
    command: command.includes('/') ? resolve(folder, command) : command,
    cwd: cwd == null ? undefined : resolve(folder, cwd),
    authMethod: authMethod ?? undefined,
    model: model ?? undefined,
    mode: mode ?? undefined,
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
