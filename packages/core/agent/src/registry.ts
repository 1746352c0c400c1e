/** The live agents of a context, as a plain object that hot paths may hold. */
import { isAbsolute } from 'node:path'
import type { ModelRegistry, Notify } from '@deepseek-ai/dsh-llm'
import {
  closeOpenTurn,
  type Session,
  type SessionId,
  type SessionTable,
} from '@deepseek-ai/dsh-session'
import { AgentError } from './errors.ts'
import { scopeOf } from './scope.ts'
import type {
  Agent,
  AgentDriver,
  AgentHandle,
  AgentOptions,
  AgentSpec,
  CreateAgentOptions,
  DrivenAgent,
} from './types.ts'

export interface AgentDefaults {
  /** Absent: the only registered model. */
  readonly model?: string
  readonly maxSteps: number
}

interface RegistryOptions {
  readonly models: ModelRegistry
  readonly sessions: SessionTable
  readonly defaults: AgentDefaults
  readonly notify: Notify
  readonly warn: (message: string, error: unknown) => void
}

/** Live agents by id, and the driver that makes them run. */
export class AgentRegistry {
  private readonly handles = new Map<SessionId, AgentHandle>()
  private readonly deps: RegistryOptions
  private driver: AgentDriver | undefined

  constructor(deps: RegistryOptions) {
    this.deps = deps
  }

  /** @throws AgentError `DUPLICATE_DRIVER`. */
  setDriver(driver: AgentDriver): void {
    if (this.driver !== undefined) {
      throw new AgentError('DUPLICATE_DRIVER', 'an agent loop is already registered')
    }
    this.driver = driver
  }

  removeDriver(driver: AgentDriver): void {
    if (this.driver === driver) this.driver = undefined
  }

  get(id: SessionId): Agent | undefined {
    return this.handles.get(id)?.agent
  }

  list(): Agent[] {
    return Array.from(this.handles.values(), ({ agent }) => agent)
  }

  /**
   * Creates an agent with a session of its own; the caller owns and disposes it.
   * @throws AgentError `NO_DRIVER`, `NO_MODEL`, `INVALID_CWD`; LlmError `UNKNOWN_MODEL`;
   * SessionError `DUPLICATE_SESSION`. Nothing is left behind then.
   */
  create({ options, toolScope, ...header }: CreateAgentOptions): AgentHandle {
    const driver = this.requireDriver()
    if (!isAbsolute(header.cwd)) {
      throw new AgentError('INVALID_CWD', `cwd must be an absolute path, not "${header.cwd}"`)
    }
    const complete = this.complete(options)
    const session = this.deps.sessions.prepare(header)
    return this.admit(this.drive(driver, { session, options: complete, toolScope }))
  }

  /**
   * Continues a stored session with its model, its cwd and a child's narrowed tools; a turn that a crash left open is closed as
   * `interrupted`, and every call in it gets its one result.
   * @throws AgentError `NO_DRIVER`, `NO_MODEL`; LlmError `UNKNOWN_MODEL`; SessionError `NO_STORE`,
   * `DUPLICATE_SESSION` and what the store throws.
   */
  async resume(id: SessionId, options: Partial<AgentOptions> = {}): Promise<AgentHandle> {
    this.requireDriver()
    const stored = await this.deps.sessions.load(id)
    // The loop may have been reloaded meanwhile.
    const driver = this.requireDriver()
    const lastTurn = stored.events.findLast((event) => event.type === 'turn/start')
    const complete = this.complete({ ...options, model: options.model ?? lastTurn?.data.model })
    const session = this.deps.sessions.reopen(stored)
    for (const { type, data } of closeOpenTurn(stored.events)) session.append(type, data)
    const toolScope = scopeOf(session.header.origin?.toolFilters)
    return this.admit(this.drive(driver, { session, options: complete, toolScope }))
  }

  /** Disposes every agent, also those that others create on their way out. */
  async disposeAll(): Promise<void> {
    while (this.handles.size > 0) {
      await Promise.all(Array.from(this.handles.values(), (handle) => handle.dispose()))
    }
  }

  private requireDriver(): AgentDriver {
    if (this.driver === undefined) {
      throw new AgentError('NO_DRIVER', 'cannot create an agent: no agent loop is loaded')
    }
    return this.driver
  }

  private complete(options: Partial<AgentOptions> = {}): AgentOptions {
    const { models, defaults } = this.deps
    const model = options.model ?? defaults.model ?? onlyModel(models)
    models.require(model)
    return { ...options, model, maxSteps: options.maxSteps ?? defaults.maxSteps }
  }

  /** A driver that throws leaves no session behind. */
  private drive(driver: AgentDriver, spec: AgentSpec): DrivenAgent {
    try {
      return driver.create(spec)
    } catch (error) {
      void this.releaseSession(spec.session)
      throw error
    }
  }

  private admit(agent: DrivenAgent): AgentHandle {
    let disposal: Promise<void> | undefined
    const handle: AgentHandle = {
      agent,
      dispose: () => {
        if (disposal !== undefined) return disposal
        const { promise, resolve } = Promise.withResolvers<void>()
        // Set first: whoever hears of the cancel may dispose the agent too.
        disposal = promise
        resolve(this.release(agent))
        return promise
      },
    }
    this.handles.set(agent.id, handle)
    this.deps.notify('agent/created', { agent })
    return handle
  }

  private async release(agent: DrivenAgent): Promise<void> {
    await agent.stop()
    this.handles.delete(agent.id)
    await this.releaseSession(agent.session)
    this.deps.notify('agent/disposed', { agent })
  }

  private async releaseSession(session: Session): Promise<void> {
    try {
      await this.deps.sessions.release(session)
    } catch (error) {
      this.deps.warn(`the last events of session "${session.id}" were not stored`, error)
    }
  }
}

/** @throws AgentError `NO_MODEL` unless exactly one is registered. */
function onlyModel(models: ModelRegistry): string {
  const [first, ...others] = models.list()
  if (first === undefined) {
    throw new AgentError(
      'NO_MODEL',
      'no model is registered: add an entry for a model adapter, "@deepseek-ai/dsh-llm-ai-sdk", or "@deepseek-ai/dsh-llm-scripted" for a script',
    )
  }
  if (others.length > 0) {
    const names = [first, ...others].map(({ name }) => name).join(', ')
    throw new AgentError('NO_MODEL', `no model was chosen: set "model" to one of ${names}`)
  }
  return first.name
}
