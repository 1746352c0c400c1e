/** The agent seam: the registry of running agents, reached through `ctx.agents`. */
import { type Context, Service } from '@deepseek-ai/cordis'
import { createNotify } from '@deepseek-ai/dsh-llm'
import type { SessionId } from '@deepseek-ai/dsh-session'
import z from '@deepseek-ai/schemastery'
import { AgentRegistry } from './registry.ts'
import type {
  Agent,
  AgentDriver,
  AgentHandle,
  AgentOptions,
  AgentStatus,
  CreateAgentOptions,
} from './types.ts'

export * from './errors.ts'
export * from './registry.ts'
export * from './types.ts'
// Named here so that its augmentation below finds the module when built.
export type { PromptAgent } from '@deepseek-ai/dsh-system-prompt'

declare module '@deepseek-ai/cordis' {
  interface Context {
    agents: AgentService
  }

  interface Events {
    /** An agent is registered and may be sent input. Contained. */
    'agent/created'(payload: { readonly agent: Agent }): void
    /** An agent is gone; its session is final. Contained. */
    'agent/disposed'(payload: { readonly agent: Agent }): void
    /** An agent began or ceased to work. Contained. */
    'agent/status'(payload: { readonly agent: Agent; readonly status: AgentStatus }): void
    /** A piece of the reply that is being streamed; not part of the log. Contained. */
    'agent/delta'(payload: {
      readonly agent: Agent
      readonly kind: 'text' | 'reasoning'
      readonly text: string
    }): void
  }
}

declare module '@deepseek-ai/dsh-tools' {
  interface ToolAgent extends Agent {}
}

declare module '@deepseek-ai/dsh-system-prompt' {
  interface PromptAgent extends Agent {}
}

export interface AgentConfig {
  /** Model of agents that are created without one; absent: the only registered model. */
  model?: string
  /** Steps of one turn, at least 1. */
  maxSteps: number
}

/** Registry of live {@link Agent}s. */
export class AgentService extends Service {
  static readonly inject = ['llm', 'sessions']

  static readonly Config: z<Partial<AgentConfig>, AgentConfig> = z.object({
    model: z.string(),
    maxSteps: z.natural().min(1).default(200),
  })

  /** The plain registry, for hot paths: each read through `ctx.agents` passes a proxy. */
  readonly registry: AgentRegistry

  constructor(ctx: Context, defaults: AgentConfig) {
    super(ctx, 'agents')
    const registry = new AgentRegistry({
      models: ctx.llm.registry,
      sessions: ctx.sessions.table,
      defaults,
      notify: createNotify(ctx),
      warn: (message, error) => ctx.logger.warn(new Error(message, { cause: error })),
    })
    this.registry = registry
    ctx.effect(() => () => registry.disposeAll(), 'agents.disposeAll()')
  }

  /**
   * Makes agents run until the calling plugin is disposed; agents that run already keep their driver.
   * @returns a disposer that removes the driver early; calling it twice is harmless.
   * @throws AgentError `DUPLICATE_DRIVER`.
   */
  registerDriver(driver: AgentDriver): () => Promise<void> {
    const { registry } = this
    return this.ctx.effect(() => {
      registry.setDriver(driver)
      return () => registry.removeDriver(driver)
    }, 'agents.registerDriver()')
  }

  /** Creates an agent that the caller owns. See {@link AgentRegistry.create} for its errors. */
  create(options: CreateAgentOptions): AgentHandle {
    return this.registry.create(options)
  }

  /** Continues a stored session. See {@link AgentRegistry.resume} for its errors. */
  resume(id: SessionId, options?: Partial<AgentOptions>): Promise<AgentHandle> {
    return this.registry.resume(id, options)
  }

  get(id: SessionId): Agent | undefined {
    return this.registry.get(id)
  }

  list(): Agent[] {
    return this.registry.list()
  }
}

export default AgentService
