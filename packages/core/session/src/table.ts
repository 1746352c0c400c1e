/** The live sessions of a context, as a plain object that hot paths may hold. */
import { randomUUID } from 'node:crypto'
import type { Notify } from '@deepseek-ai/dsh-llm'
import { SessionError } from './errors.ts'
import { Session } from './session.ts'
import type {
  PrepareSessionOptions,
  SessionEvent,
  SessionHeader,
  SessionId,
  SessionStore,
  StoredSession,
} from './types.ts'

/** Live sessions by id, and the store that makes them durable when there is one. */
export class SessionTable {
  private readonly live = new Map<SessionId, Session>()
  private readonly notify: Notify
  private store: SessionStore | undefined

  constructor(notify: Notify) {
    this.notify = notify
  }

  /** @throws SessionError `DUPLICATE_STORE`. */
  setStore(store: SessionStore): void {
    if (this.store !== undefined) {
      throw new SessionError('DUPLICATE_STORE', 'a session store is already registered')
    }
    for (const session of this.live.values()) store.open(session)
    this.store = store
  }

  removeStore(store: SessionStore): void {
    if (this.store === store) this.store = undefined
  }

  /** @throws SessionError `DUPLICATE_SESSION`. */
  prepare(options: PrepareSessionOptions): Session {
    const { id = newSessionId(), cwd, parentSession, delegationDepth = 0, origin, seed } = options
    const header: SessionHeader = Object.freeze({
      id,
      createdAt: Date.now(),
      cwd,
      ...(parentSession !== undefined && { parentSession }),
      ...(seed !== undefined && { seedLength: seed.length }),
      delegationDepth,
      ...(origin !== undefined && { origin }),
    })
    return this.admit(new Session(header, this.onAppend, seed))
  }

  /** Takes up a stored session again. @throws SessionError `DUPLICATE_SESSION`. */
  reopen({ header, seed, events }: StoredSession): Session {
    return this.admit(new Session(header, this.onAppend, seed, events))
  }

  get(id: SessionId): Session | undefined {
    return this.live.get(id)
  }

  list(): Session[] {
    return [...this.live.values()]
  }

  /** Absent when no store is registered, so that a step without one costs nothing. */
  flush(session: Session): Promise<void> | undefined {
    return this.store?.flush(session)
  }

  /** Forgets a session after its last flush; settles when the store has let go of it. */
  async release(session: Session): Promise<void> {
    if (!this.live.delete(session.id)) return
    try {
      await this.store?.close(session)
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

  private admit(session: Session): Session {
    if (this.live.has(session.id)) {
      throw new SessionError('DUPLICATE_SESSION', `session "${session.id}" is already live`)
    }
    this.store?.open(session)
    this.live.set(session.id, session)
    this.notify('session/created', { session })
    return session
  }

  private readonly onAppend = (session: Session, event: SessionEvent): void => {
    this.store?.append(session, event)
    this.notify('session/event', { session, event })
  }
}

function newSessionId(): SessionId {
  return randomUUID() as SessionId
}
