/** What makes logs durable. */
import type { Session, SessionPrefix } from './session.ts'
import type { SessionEvent, SessionHeader, SessionId } from './types.ts'

/** A session as a store kept it. */
export interface StoredSession {
  readonly header: SessionHeader
  /** The session's own events, in order, without the seed. */
  readonly events: readonly SessionEvent[]
  readonly seed?: SessionPrefix
}

/** What a store tells of a session without reading its log. */
export interface StoredSessionInfo {
  readonly header: SessionHeader
  /** The label of a child, else the start of the first user message, in one line; may be empty. */
  readonly title: string
  /** Epoch ms of the last event. */
  readonly updatedAt: number
}

/** Makes logs durable; one per context. Errors of a write surface in `flush`. */
export interface SessionStore {
  /**
   * Called when a session is prepared or reopened, and for each live session that no store keeps
   * when the store is registered; the events that the session has by then are the store's to write.
   * The store keeps the session to its end, also when it is unregistered before.
   */
  open(session: Session): void
  /** Called for each event, in order, right after it was committed. Must neither block nor throw. */
  append(session: Session, event: SessionEvent): void
  /** Settles when all events so far are durable; rejects with what prevented it. */
  flush(session: Session): Promise<void>
  /** Flushes and lets go of the session. */
  close(session: Session): Promise<void>
  /** @throws SessionError `UNKNOWN_SESSION` and what the store's own package documents. */
  load(id: SessionId): Promise<StoredSession>
  /** What is stored, live or not, in any order; what cannot be read is left out. */
  list?(): Promise<readonly StoredSessionInfo[]>
}
