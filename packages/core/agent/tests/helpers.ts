/** What the specs of this package share. */
import type { Context } from '@deepseek-ai/cordis'
import { type ModelAdapter, ModelRegistry } from '@deepseek-ai/dsh-llm'
import {
  type SessionEvent,
  type SessionHeader,
  type SessionId,
  type SessionStore,
  SessionTable,
} from '@deepseek-ai/dsh-session'
import { scriptedModel } from '@deepseek-ai/dsh-testkit'
import {
  type AgentDefaults,
  type AgentDriver,
  AgentRegistry,
  type AgentSpec,
  type DrivenAgent,
} from '../src/index.ts'

/** A driver whose agents do nothing; `specs` is what it was asked for. */
export function createDriver(overrides: Partial<DrivenAgent> = {}): AgentDriver & {
  readonly specs: AgentSpec[]
} {
  const specs: AgentSpec[] = []
  return {
    specs,
    create: (spec) => {
      specs.push(spec)
      const { session, options } = spec
      const agent: Partial<DrivenAgent> = {
        id: session.id,
        session,
        options,
        model: options.model,
        cwd: session.header.cwd,
        stop: async () => {},
        ...overrides,
      }
      return agent as DrivenAgent
    },
  }
}

export interface Setup {
  readonly registry: AgentRegistry
  readonly sessions: SessionTable
  /** Names of the events and texts of the warnings, in order. */
  readonly told: string[]
}

/** A registry without a context; by default with one driver and one model, `scripted`. */
export function createRegistry({
  adapters = [scriptedModel([])],
  driver = createDriver(),
  defaults = { maxSteps: 10 },
}: {
  readonly adapters?: readonly ModelAdapter[]
  readonly driver?: AgentDriver | null
  readonly defaults?: AgentDefaults
} = {}): Setup {
  const told: string[] = []
  const models = new ModelRegistry()
  for (const adapter of adapters) models.add(adapter)
  const sessions = new SessionTable(() => {})
  const registry = new AgentRegistry({
    models,
    sessions,
    defaults,
    notify: ((name: string) => void told.push(name)) as never,
    warn: (message) => void told.push(message),
  })
  if (driver !== null) registry.setDriver(driver)
  return { registry, sessions, told }
}

/** The texts of all warnings from now on; cordis exports none unless the exporter asks for them. */
export function collectWarnings(ctx: Context): string[] {
  const warnings: string[] = []
  ctx.logger.exporter({
    levels: { default: 2 },
    export: ({ type, args }) => {
      if (type === 'warn') warnings.push(args.map(String).join(' '))
    },
  })
  return warnings
}

/** A store that keeps sessions in memory, as JSON, over the life of a context. */
export function createStore(overrides: Partial<SessionStore> = {}): SessionStore {
  const headers = new Map<SessionId, SessionHeader>()
  const lines = new Map<SessionId, string[]>()
  return {
    open: (session) => {
      headers.set(session.id, session.header)
      const events = [...session.events(session.header.seedLength)]
      lines.set(
        session.id,
        events.map((event) => JSON.stringify(event)),
      )
    },
    append: ({ id }, event) => void lines.get(id)?.push(JSON.stringify(event)),
    flush: async () => {},
    close: async () => {},
    load: async (id) => {
      const header = headers.get(id)
      if (header === undefined) throw new Error(`no session "${id}" is stored`)
      const events = (lines.get(id) ?? []).map((line) => JSON.parse(line) as SessionEvent)
      return { header, events }
    },
    ...overrides,
  }
}
