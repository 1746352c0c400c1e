/** The options of the backend. */
import z from '@deepseek-ai/schemastery'
import type { PermissionPolicy } from './permission.ts'

export interface PoolLimits {
  /** How many agents wait. */
  readonly warm: number
  /** How long one waits before it is ended, in ms. */
  readonly idleMs: number
}

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
