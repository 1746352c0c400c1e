/** The session seam: one append-only log per agent, reached through `ctx.sessions`. */
import { type Context, Service } from '@deepseek-ai/cordis'
import { createNotify } from '@deepseek-ai/dsh-llm'
import type { Session } from './session.ts'
import type { SessionStore, StoredSessionInfo } from './store.ts'
import { type PrepareSessionOptions, SessionTable } from './table.ts'
import type { SessionEvent, SessionId } from './types.ts'

export * from './close.ts'
export * from './errors.ts'
export * from './freeze.ts'
export * from './ids.ts'
export * from './messages.ts'
export * from './session.ts'
export * from './store.ts'
export * from './table.ts'
export * from './types.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    sessions: SessionService
  }

  interface Events {
    /** A session came to life, new or resumed. Contained. */
    'session/created'(payload: { readonly session: Session }): void
    /** An event was committed to a live session. Contained. */
    'session/event'(payload: { readonly session: Session; readonly event: SessionEvent }): void
    /** A session left the registry; its log is final. Contained. */
    'session/released'(payload: { readonly session: Session }): void
  }
}

/** Registry of live {@link Session}s. */
export class SessionService extends Service {
  /** The plain registry, for hot paths: each read through `ctx.sessions` passes a proxy. */
  readonly table: SessionTable

  constructor(ctx: Context) {
    super(ctx, 'sessions')
    this.table = new SessionTable(createNotify(ctx))
  }

  /** Creates a live session. @throws SessionError `DUPLICATE_SESSION`. */
  prepare(options: PrepareSessionOptions): Session {
    return this.table.prepare(options)
  }

  get(id: SessionId): Session | undefined {
    return this.table.get(id)
  }

  list(): Session[] {
    return this.table.list()
  }

  /** @see SessionTable.listStored */
  listStored(): Promise<readonly StoredSessionInfo[]> {
    return this.table.listStored()
  }

  /**
   * Makes sessions durable until the calling plugin is disposed; those that the store has by then
   * it keeps to their end.
   * @returns a disposer that removes the store early; calling it twice is harmless.
   * @throws SessionError `DUPLICATE_STORE`.
   */
  registerStore(store: SessionStore): () => Promise<void> {
    const { table } = this
    return this.ctx.effect(() => {
      table.setStore(store)
      return () => table.removeStore(store)
    }, 'sessions.registerStore()')
  }
}

export default SessionService
