/** Subagent backend: drives any agent that speaks the Agent Client Protocol, one process per run. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import {
  SubagentError,
  type SubagentProvider,
  type SubagentStartRequest,
} from '@deepseek-ai/dsh-subagent'
import z from '@deepseek-ai/schemastery'
import { Conversation } from './conversation.ts'
import type { PermissionPolicy } from './permission.ts'
import { AgentPool, type PoolLimits } from './pool.ts'
import { startAcpRun } from './run.ts'

export type { PermissionPolicy, PoolLimits }

export const name = 'subagent-acp'
export const inject = ['subagents']

export interface Config {
  /** Name on `ctx.subagents`. */
  providerName: string
  /** A name on the PATH, or a path that is absolute or relative to the yml's folder; no shell. */
  command: string
  /** Passed on as they are. */
  args: string[]
  /** Absolute, or relative to the yml's folder. Absent: the workspace of the parent. */
  cwd?: string
  /** Added to the ambient environment without its secrets; always wins. */
  env: Record<string, string>
  /** How permission requests are answered. */
  permission: PermissionPolicy
  /** Tried once when the agent wants to be authenticated. */
  authMethod?: string
  /** A model that the agent offers. */
  model?: string
  /** A mode that the agent offers. */
  mode?: string
  /** Agents that are started ahead; absent: each run starts its own. */
  pool?: PoolLimits
  /** From the start of the process to a session, in ms. */
  handshakeTimeoutMs: number
  /** How long the agent may take to end after its stdin was closed, in ms. */
  disposeEofGraceMs: number
  /** How long it may take to end after SIGTERM, in ms. */
  disposeGraceMs: number
}

const maxMs = 600_000

export const Config: z<Partial<Config> & Pick<Config, 'command'>, Config> = z.object({
  providerName: z.string().min(1).default('acp'),
  command: z.string().min(1).required(),
  args: z.array(z.string().required()).default([]),
  cwd: z.string().min(1),
  env: z.dict(z.string().required()).default({}),
  permission: z.union(['reject', 'allow'] as const).default('reject'),
  authMethod: z.string().min(1),
  model: z.string().min(1),
  mode: z.string().min(1),
  pool: z
    .object({
      warm: z.natural().min(1).max(16).default(1),
      idleMs: z.natural().min(1).max(3_600_000).default(300_000),
    })
    // An object that is omitted would arrive with its defaults.
    .default(undefined as never),
  handshakeTimeoutMs: z.natural().min(1).max(maxMs).default(30_000),
  disposeEofGraceMs: z.natural().max(maxMs).default(6000),
  disposeGraceMs: z.natural().max(maxMs).default(3000),
})

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
