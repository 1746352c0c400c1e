/** The `subagent` tool: a model delegates a task to a child of one configured provider. */
import type { Context } from '@deepseek-ai/cordis'
import type { AgentOptions } from '@deepseek-ai/dsh-agent'
import type { SubagentRun, SubagentToolFilter, SubagentUpdate } from '@deepseek-ai/dsh-subagent'
import { SubagentError } from '@deepseek-ai/dsh-subagent'
import type { ToolExecution } from '@deepseek-ai/dsh-tools'
import z from '@deepseek-ai/schemastery'
import { mirrorProvider } from './mirror.ts'
import { ProgressLine } from './progress.ts'
import { createSubagentTool, type RequestOptions, type SubagentToolSpec } from './tool.ts'

export const name = 'tool-subagent'
export const inject = ['subagents', 'tools']

export interface Config {
  /** Name of the subagent provider. */
  provider: string
  /** Name that the model sees. */
  toolName: string
  /** What children run with; absent parts come from their parent. */
  agentOptions?: Partial<AgentOptions>
  /** Deepest allowed depth of a child; absent: 3 when the provider can limit it. */
  maxDepth?: number
  /** Narrows the children's tools. */
  toolFilter?: SubagentToolFilter
  /** Bound of a whole run, in ms. */
  timeoutMs?: number
  /** Bound of the time between two signs of life, in ms; 0 means none. */
  idleTimeoutMs: number
  /** Bound of a result, in bytes. */
  maxOutputBytes: number
}

/** The longest delay that a timer takes, in ms. */
const maxDelayMs = 2 ** 31 - 1

export const Config: z<Partial<Config> & Pick<Config, 'provider'>, Config> = z.object({
  provider: z.string().min(1).required(),
  toolName: z
    .string()
    .pattern(/^[a-zA-Z0-9_-]{1,64}$/)
    .default('subagent'),
  agentOptions: optional<Partial<AgentOptions>>(
    z.object({
      model: z.string(),
      maxOutputTokens: z.natural().min(1),
      temperature: z.number().min(0),
      maxSteps: z.natural().min(1),
    }),
  ),
  maxDepth: z.natural().max(Number.MAX_SAFE_INTEGER),
  toolFilter: optional<SubagentToolFilter>(
    z.object({
      allow: optional<readonly string[]>(z.array(z.string().required())),
      deny: optional<readonly string[]>(z.array(z.string().required())),
    }),
  ),
  timeoutMs: z.natural().min(1).max(maxDelayMs),
  idleTimeoutMs: z.natural().max(maxDelayMs).default(1_800_000),
  maxOutputBytes: z.natural().min(1024).max(16_777_216).default(32_768),
})

export function apply(ctx: Context, config: Config): void {
  // Whoever reloads the sessions reloads the seam, and with it this tool.
  const sessions = ctx.get('sessions')?.table
  const spec: SubagentToolSpec = {
    name: config.toolName,
    subagents: ctx.subagents.registry,
    request: requestOptionsOf(config),
    maxOutputBytes: config.maxOutputBytes,
    isStored: (id) => sessions?.isStored(id) === true,
    follow: createFollow(ctx),
  }
  mirrorProvider(ctx, {
    providerName: config.provider,
    createTool: (provider) => createSubagentTool(spec, provider),
  })
}

/** Schemastery makes {} and [] of what is omitted, unless the default is forced to be absent. */
function optional<T>(schema: { default(value: never): unknown }): z<T | undefined> {
  return schema.default(undefined as never) as z<T | undefined>
}

function requestOptionsOf(config: Config): RequestOptions {
  const { agentOptions, maxDepth, timeoutMs } = given(config)
  const { toolFilter, idleTimeoutMs } = config
  return given({
    agentOptions: agentOptions && given(agentOptions),
    maxDepth,
    toolFilter: toolFilter === undefined ? undefined : checkedFilter(toolFilter),
    timeoutMs,
    idleTimeoutMs: idleTimeoutMs === 0 ? undefined : idleTimeoutMs,
  })
}

/** The values that are there; an empty yml value arrives as null and counts as omitted, unless it narrows rights. */
function given<T extends object>(values: T): Partial<T> {
  const entries = Object.entries(values).filter(
    ([, value]) => value !== undefined && value !== null,
  )
  return Object.fromEntries(entries) as Partial<T>
}

/** A filter that narrows nothing, or not as much as it looks, would widen the children's rights. */
function checkedFilter(filter: SubagentToolFilter | null): SubagentToolFilter {
  if (filter === null) throw withoutValue('toolFilter')
  for (const [key, list] of Object.entries(filter)) {
    if (list === null) throw withoutValue(`toolFilter.${key}`)
  }
  const unknown = Object.keys(filter).find((key) => key !== 'allow' && key !== 'deny')
  if (unknown !== undefined) {
    throw new SubagentError(
      'INVALID_REQUEST',
      `toolFilter has the unknown key "${unknown}": it takes "allow" and "deny"`,
    )
  }
  if (filter.allow === undefined && (filter.deny ?? []).length === 0) {
    throw new SubagentError(
      'INVALID_REQUEST',
      'toolFilter is empty: name tools under "allow" or "deny", or leave it out',
    )
  }
  return given(filter)
}

function withoutValue(key: string): SubagentError {
  const message = `${key} has no value: name tools, or leave the key out`
  return new SubagentError('INVALID_REQUEST', message)
}

/** One listener for all runs, which finds the call that waits for the run. */
function createFollow(ctx: Context): SubagentToolSpec['follow'] {
  const { registry } = ctx.subagents
  const followers = new Map<string, (update: SubagentUpdate) => void>()
  ctx.on('subagent/update', (update) => followers.get(update.runId)?.(update))
  return (run: SubagentRun, tell: ToolExecution['update']) => {
    const runId = registry.getRun(run.id)?.runId
    // A run that is over already has nothing more to tell.
    if (runId === undefined) return () => {}
    const line = new ProgressLine()
    followers.set(runId, (update) => {
      const text = line.push(update)
      if (text !== undefined) tell({ text })
    })
    return () => followers.delete(runId)
  }
}
