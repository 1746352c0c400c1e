/** The subagent seam: named providers of child agents, reached through `ctx.subagents`. */
import { type Context, Service } from '@deepseek-ai/cordis'
import { createNotify } from '@deepseek-ai/dsh-llm'
import type { SessionId } from '@deepseek-ai/dsh-session'
import z from '@deepseek-ai/schemastery'
import { SubagentError } from './errors.ts'
import { checkRequest } from './request.ts'
import { type RunLimits, RunTable } from './runs.ts'
import type {
  SubagentProvider,
  SubagentRun,
  SubagentRunEnd,
  SubagentRunInfo,
  SubagentRunState,
  SubagentStartRequest,
  SubagentUpdate,
} from './types.ts'

export * from './errors.ts'
export { depthOf } from './request.ts'
export type { RunLimits } from './runs.ts'
export * from './types.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    subagents: SubagentService
  }

  interface Events {
    /** A provider may be used; a listener that throws takes the registration back. */
    'subagent/provider-added'(payload: { readonly provider: SubagentProvider }): void
    /** A provider takes no more starts; its runs go on. Contained. */
    'subagent/provider-removed'(payload: { readonly provider: SubagentProvider }): void
    /** A child was started. Contained. */
    'subagent/start'(payload: SubagentRunInfo): void
    /** A sign of life of a running child, at most one text update in 50 ms a run. Contained. */
    'subagent/update'(payload: SubagentUpdate): void
    /** The result of a started child is settled. Contained. */
    'subagent/end'(payload: SubagentRunEnd): void
  }
}

/** An hour: longer than the ladder of any backend. */
const maxDisposeTimeoutMs = 3_600_000

/** Registry of {@link SubagentProvider}s, and the care of their runs. */
export class SubagentService extends Service {
  static readonly inject = ['agents', 'sessions']

  static readonly Config: z<Partial<RunLimits>, RunLimits> = z.object({
    maxConcurrent: z.natural().min(1).default(16),
    maxConcurrentPerParent: z.natural().min(1).default(8),
    maxPerTurn: z.natural().min(1).default(32),
    disposeTimeoutMs: z.natural().min(1).max(maxDisposeTimeoutMs).default(30_000),
  })

  /** For hot paths: each call on `ctx.subagents` passes proxies. */
  readonly registry: Pick<SubagentService, 'start' | 'getRun'> = {
    start: (name, request) => this.start(name, request),
    getRun: (id) => this.getRun(id),
  }
  private readonly providers = new Map<string, SubagentProvider>()
  private readonly table: RunTable

  constructor(ctx: Context, limits: RunLimits) {
    super(ctx, 'subagents')
    const { logger } = ctx
    const table = new RunTable(limits, createNotify(ctx), (message, error) =>
      logger.warn(new Error(message, { cause: error })),
    )
    this.table = table
    ctx.on('agent/delta', ({ agent, kind, text }) => table.onDelta(agent.id, kind, text))
    ctx.on('tools/progress', ({ call }) => table.onProgress(call.agent.id))
    ctx.on('session/event', ({ session, event }) => table.onEvent(session, event))
    ctx.effect(() => () => table.disposeAll(), 'subagents.disposeAll()')
  }

  /**
   * Adds a provider until the calling plugin is disposed; its runs may outlive it.
   * @returns a disposer that removes it early; calling it twice is harmless.
   * @throws SubagentError `DUPLICATE_PROVIDER`, and what a `subagent/provider-added` listener throws.
   */
  registerProvider(provider: SubagentProvider): () => Promise<void> {
    const { providers, ctx } = this
    const notify = createNotify(ctx)
    const { name } = provider
    return ctx.effect(function* () {
      if (providers.has(name)) {
        throw new SubagentError(
          'DUPLICATE_PROVIDER',
          `subagent provider "${name}" is already registered: give one of the two another providerName`,
        )
      }
      providers.set(name, provider)
      yield () => {
        providers.delete(name)
        notify('subagent/provider-removed', { provider })
      }
      announceAdded(ctx, provider)
    }, `subagents.registerProvider(${name})`)
  }

  getProvider(name: string): SubagentProvider | undefined {
    return this.providers.get(name)
  }

  /** The names of the providers, in the order of registration. */
  list(): string[] {
    return [...this.providers.keys()]
  }

  /**
   * Starts a child; the caller owns the run and disposes it on every path. A run that finds no
   * slot waits for one, in order. An aborted signal gives a run that is over and started nothing.
   * @throws SubagentError `NO_PROVIDER`, `UNSUPPORTED_CAPABILITY`, `INVALID_REQUEST`,
   * `DEPTH_EXCEEDED`, `TOO_MANY_RUNS`; nothing was created then.
   */
  start(name: string, request: SubagentStartRequest): SubagentRun {
    const provider = this.providers.get(name)
    if (provider === undefined) {
      const known = this.list().join(', ') || 'none'
      throw new SubagentError(
        'NO_PROVIDER',
        `no subagent provider "${name}" (registered: ${known})`,
      )
    }
    return this.table.start(provider, request, checkRequest(provider, request))
  }

  /** The live run of a child; absent once its result is settled. */
  getRun(id: SessionId): SubagentRunState | undefined {
    return this.table.get(id)
  }

  /** The live runs, those that wait for a slot among them, oldest first. */
  runs(): SubagentRunState[] {
    return this.table.list()
  }
}

/** Like `ctx.emit`, but a listener that rejects is logged: by then it is too late to refuse. */
function announceAdded({ root }: Context, provider: SubagentProvider): void {
  const listeners = root.events._hooks['subagent/provider-added'] ?? []
  for (const { callback } of listeners.slice()) {
    Promise.resolve(callback({ provider })).catch((error: unknown) => root.logger.error(error))
  }
}

export default SubagentService
