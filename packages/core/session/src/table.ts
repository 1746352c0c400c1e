/** The live sessions of a context, as a plain object that hot paths may hold. */
import type { Notify } from '@deepseek-ai/dsh-llm'
import { SessionError } from './errors.ts'
import { freezeJson } from './freeze.ts'
import { randomId } from './ids.ts'
import { Session, type SessionPrefix } from './session.ts'
import type { SessionStore, StoredSession, StoredSessionInfo } from './store.ts'
import type { SessionEvent, SessionHeader, SessionId, SessionOrigin } from './types.ts'

export interface PrepareSessionOptions {
  /** Default: a new random id. */
  id?: SessionId
  cwd: string
  parentSession?: SessionId
  /** Default 0. */
  delegationDepth?: number
  origin?: SessionOrigin
  /** The events that a fork starts with. */
  seed?: SessionPrefix
}

interface LiveSession {
  readonly session: Session
  /** Where it is kept, to its end: also after this store takes no more sessions. */
  store: SessionStore | undefined
  /** What the store threw while it took an event: from then on the stored log has a gap. */
  failure?: Error
}

/** Live sessions by id, and the store that makes them durable when there is one. */
export class SessionTable {
  private readonly live = new Map<SessionId, LiveSession>()
  private readonly notify: Notify
  private store: SessionStore | undefined

  constructor(notify: Notify) {
    this.notify = notify
  }

  /** @throws SessionError `DUPLICATE_STORE`, and what the store throws; it keeps no session then. */
  setStore(store: SessionStore): void {
    if (this.store !== undefined) {
      throw new SessionError('DUPLICATE_STORE', 'a session store is already registered')
    }
    const homeless = [...this.live.values()].filter((live) => live.store === undefined)
    openAll(store, homeless)
    for (const live of homeless) live.store = store
    this.store = store
  }

  /** The store takes no more sessions, and keeps those that it has until they are released. */
  removeStore(store: SessionStore): void {
    if (this.store === store) this.store = undefined
  }

  /** @throws SessionError `DUPLICATE_SESSION`, `NOT_JSON`. */
  prepare(options: PrepareSessionOptions): Session {
    const {
      id = randomId() as SessionId,
      cwd,
      parentSession,
      delegationDepth = 0,
      origin,
      seed,
    } = options
    // What is absent is left out; what the caller holds, for example a filter, is copied.
    const header = freezeJson<SessionHeader>(
      {
        id,
        createdAt: Date.now(),
        cwd,
        parentSession,
        seedLength: seed?.length,
        delegationDepth,
        origin,
      },
      'header',
    )
    return this.admit(new Session(header, this.onAppend, seed))
  }

  /** Takes up a stored session again. @throws SessionError `DUPLICATE_SESSION`. */
  reopen({ header, seed, events }: StoredSession): Session {
    return this.admit(new Session(header, this.onAppend, seed, events))
  }

  get(id: SessionId): Session | undefined {
    return this.live.get(id)?.session
  }

  list(): Session[] {
    return Array.from(this.live.values(), ({ session }) => session)
  }

  /** Whether the log can still be read when the session is no longer live. */
  isStored(id: SessionId): boolean {
    return this.live.get(id)?.store !== undefined
  }

  /** Absent when no store keeps the session, so that a step without one costs nothing. */
  flush(session: Session): Promise<void> | undefined {
    const live = this.live.get(session.id)
    if (live?.failure !== undefined) return Promise.reject(live.failure)
    return live?.store?.flush(session)
  }

  /** Forgets a session after its last flush; settles when the store has let go of it. */
  async release(session: Session): Promise<void> {
    const live = this.live.get(session.id)
    if (live === undefined) return
    this.live.delete(session.id)
    try {
      await live.store?.close(session)
    } finally {
      this.notify('session/released', { session })
    }
  }

  /** @throws SessionError `NO_STORE`, and what the store throws. */
  load(id: SessionId): Promise<StoredSession> {
    if (this.store === undefined) {
      throw new SessionError('NO_STORE', `cannot load session "${id}": no session store is loaded`)
    }
    return this.store.load(id)
  }

  /** Whether there is a store: sessions outlive the process then, and can be loaded. */
  get hasStore(): boolean {
    return this.store !== undefined
  }

  /** Whether there is a store that can list what it has. */
  get canListStored(): boolean {
    return this.store?.list !== undefined
  }

  /**
   * What is stored, live or not; the session that changed last comes first.
   * @throws SessionError `NO_STORE` also for a store that cannot list.
   */
  async listStored(): Promise<readonly StoredSessionInfo[]> {
    if (this.store?.list === undefined) {
      throw new SessionError(
        'NO_STORE',
        'cannot list sessions: no session store that lists is loaded',
      )
    }
    const stored = await this.store.list()
    return stored.toSorted(
      (a, b) => b.updatedAt - a.updatedAt || (a.header.id < b.header.id ? -1 : 1),
    )
  }

  private admit(session: Session): Session {
    if (this.live.has(session.id)) {
      throw new SessionError('DUPLICATE_SESSION', `session "${session.id}" is already live`)
    }
    const { store } = this
    store?.open(session)
    this.live.set(session.id, { session, store })
    this.notify('session/created', { session })
    return session
  }

  private readonly onAppend = (session: Session, event: SessionEvent): void => {
    const live = this.live.get(session.id)
    try {
      live?.store?.append(session, event)
    } catch (error) {
      // The event is committed: whoever appends must not fail, and whoever flushes must.
      if (live !== undefined) live.failure ??= error as Error
    }
    this.notify('session/event', { session, event })
  }
}

function openAll(store: SessionStore, lives: readonly LiveSession[]): void {
  const opened: Session[] = []
  try {
    for (const { session } of lives) {
      store.open(session)
      opened.push(session)
    }
  } catch (error) {
    // The refusal is what is told; what a session loses by it, it never had.
    for (const session of opened) store.close(session).catch(() => {})
    throw error
  }
}
