/** The session store over a folder of files. */
import { isHarnessError, messageOf } from '@deepseek-ai/dsh-llm'
import {
  Session,
  SessionError,
  type SessionEvent,
  type SessionHeader,
  type SessionId,
  type SessionPrefix,
  type SessionStore,
  type StoredSession,
  type StoredSessionInfo,
} from '@deepseek-ai/dsh-session'
import { SessionFileError } from './errors.ts'
import { fileOf } from './format.ts'
import { glanceAtAll } from './glance.ts'
import { assertUnowned, LockTable } from './lock.ts'
import { readSession, type SessionFile } from './reader.ts'
import { SessionWriter } from './writer.ts'

export interface FileStoreOptions {
  /** Absolute path; created when the first session is written. */
  readonly root: string
  /** A live session, whose log a fork that is resumed can share. */
  readonly live: (id: SessionId) => Session | undefined
  readonly warn: (message: string) => void
}

/** Keeps each session in `<root>/<id>.jsonl`. */
export class FileStore implements SessionStore {
  private readonly options: FileStoreOptions
  private readonly locks: LockTable
  private readonly writers = new Map<SessionId, SessionWriter>()
  /** What was loaded, until the session is reopened with this header or nobody wants it any more. */
  private readonly loaded = new WeakMap<SessionHeader, SessionFile>()

  constructor(options: FileStoreOptions) {
    this.options = options
    this.locks = new LockTable(options.root)
  }

  /** @throws SessionFileError `INVALID_SESSION_ID`; for a session that is resumed also `SESSION_IN_USE`, `SESSION_CHANGED`, `SESSION_WRITE_FAILED`. */
  open(session: Session): void {
    const file = fileOf(this.options.root, session.id)
    const stored = this.loaded.get(session.header)
    const writer = new SessionWriter({ file, session, locks: this.locks, stored })
    // Two that resume one session must not find out only when both have gone on with it.
    if (stored !== undefined) writer.open()
    this.writers.set(session.id, writer)
    if (session.length > (session.header.seedLength ?? 0)) writer.writeSoon()
  }

  append({ id }: Session, { type }: SessionEvent): void {
    if (type === 'turn/start') this.writers.get(id)?.writeSoon()
  }

  async flush({ id }: Session): Promise<void> {
    this.writers.get(id)?.flush()
  }

  async close({ id }: Session): Promise<void> {
    const writer = this.writers.get(id)
    this.writers.delete(id)
    writer?.close()
  }

  /**
   * Writes what there is of every session; those that are live stay with the store to their end.
   * Never throws: what could not be written is told.
   */
  retire(): void {
    for (const [id, writer] of this.writers) {
      try {
        writer.flush()
      } catch (error) {
        this.options.warn(`the last events of session "${id}" are not stored: ${messageOf(error)}`)
      }
    }
    this.locks.retire()
  }

  /**
   * @throws SessionError `UNKNOWN_SESSION`, `DUPLICATE_SESSION`; SessionFileError `SESSION_CORRUPT`,
   * `SESSION_VERSION`, `SESSION_IN_USE`, `INVALID_SESSION_ID`.
   */
  async load(id: SessionId): Promise<StoredSession> {
    const { root, warn, live } = this.options
    const file = fileOf(root, id)
    if (live(id) !== undefined) {
      throw new SessionError('DUPLICATE_SESSION', `session "${id}" is already live`)
    }
    assertUnowned(file)
    const stored = await readSession(root, id)
    const { header, events, torn } = stored
    if (torn !== undefined) {
      warn(`${file}:${torn.line}: the last line is torn: it is kept in a file beside this one`)
    }
    const seed = await this.seedOf(stored, [id])
    this.loaded.set(header, stored)
    return { header, events, ...(seed !== undefined && { seed }) }
  }

  list(): Promise<readonly StoredSessionInfo[]> {
    return glanceAtAll(this.options.root)
  }

  /** The events that a fork inherited, from its parent's file or its live log. */
  private async seedOf(
    { header }: SessionFile,
    line: readonly SessionId[],
  ): Promise<SessionPrefix | undefined> {
    const { parentSession: id, seedLength } = header
    if (seedLength === undefined) return undefined
    if (id === undefined || line.includes(id)) {
      throw orphan(header.id, `it names "${id ?? 'nobody'}" as its parent`)
    }
    const session = this.options.live(id) ?? (await this.readParent(header.id, id, line))
    if (session.length >= seedLength) return { session, length: seedLength }
    const file = fileOf(this.options.root, id)
    throw orphan(
      header.id,
      `it needs ${seedLength} events of "${file}", which has ${session.length}`,
    )
  }

  private async readParent(
    child: SessionId,
    id: SessionId,
    line: readonly SessionId[],
  ): Promise<Session> {
    try {
      const parent = await readSession(this.options.root, id)
      const seed = await this.seedOf(parent, [...line, id])
      return new Session(parent.header, () => {}, seed, parent.events)
    } catch (error) {
      if (!isHarnessError(error)) throw error
      throw orphan(child, error.message, error)
    }
  }
}

function orphan(child: SessionId, why: string, cause?: unknown): SessionFileError {
  return new SessionFileError(
    'SESSION_CORRUPT',
    `the fork "${child}" cannot be read without its parent: ${why}`,
    { cause },
  )
}
