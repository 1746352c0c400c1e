/** The session store over a folder of files. */
import { isHarnessError, messageOf } from '@deepseek-ai/dsh-llm'
import {
  Session,
  type SessionEvent,
  type SessionId,
  type SessionPrefix,
  type SessionStore,
  type StoredSession,
} from '@deepseek-ai/dsh-session'
import { SessionFileError } from './errors.ts'
import { fileOf } from './format.ts'
import { lockOwner } from './lock.ts'
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
  private readonly writers = new Map<SessionId, SessionWriter>()
  /** What was loaded, until the session is reopened. */
  private readonly loaded = new Map<SessionId, SessionFile>()

  constructor(options: FileStoreOptions) {
    this.options = options
  }

  open(session: Session): void {
    const stored = this.loaded.get(session.id)
    this.loaded.delete(session.id)
    const file = fileOf(this.options.root, session.id)
    this.writers.set(session.id, new SessionWriter(file, session, stored))
  }

  append(session: Session, event: SessionEvent): void {
    this.writers.get(session.id)?.append(event)
  }

  async flush(session: Session): Promise<void> {
    this.writers.get(session.id)?.flush()
  }

  async close(session: Session): Promise<void> {
    const writer = this.writers.get(session.id)
    this.writers.delete(session.id)
    writer?.close()
  }

  /** Closes every file. Never throws: what could not be written is told. */
  closeAll(): void {
    for (const [id, writer] of this.writers) {
      try {
        writer.close()
      } catch (error) {
        this.options.warn(`the last events of session "${id}" were not stored: ${messageOf(error)}`)
      }
    }
    this.writers.clear()
  }

  /**
   * @throws SessionError `UNKNOWN_SESSION`; SessionFileError `SESSION_CORRUPT`, `SESSION_VERSION`,
   * `SESSION_IN_USE`, `INVALID_SESSION_ID`.
   */
  async load(id: SessionId): Promise<StoredSession> {
    const { root, warn } = this.options
    const file = fileOf(root, id)
    const owner = lockOwner(file)
    if (owner !== undefined) {
      throw new SessionFileError('SESSION_IN_USE', `"${file}" is being written by process ${owner}`)
    }
    const stored = await readSession(root, id)
    if (stored.torn !== undefined) {
      warn(
        `${file}:${stored.torn.line}: the last line is torn; it is set aside when the session goes on`,
      )
    }
    const seed = await this.seedOf(stored)
    this.loaded.set(id, stored)
    const { header, events } = stored
    return { header, events, ...(seed !== undefined && { seed }) }
  }

  /** The events that a fork inherited, from its parent's file or its live log. */
  private async seedOf({ header }: SessionFile): Promise<SessionPrefix | undefined> {
    const { parentSession, seedLength } = header
    if (parentSession === undefined || seedLength === undefined) return undefined
    const session =
      this.options.live(parentSession) ?? (await this.readParent(header.id, parentSession))
    if (session.length >= seedLength) return { session, length: seedLength }
    throw new SessionFileError(
      'SESSION_CORRUPT',
      `${fileOf(this.options.root, parentSession)}: the fork "${header.id}" needs its first ${seedLength} events, it has ${session.length}`,
    )
  }

  private async readParent(child: SessionId, id: SessionId): Promise<Session> {
    try {
      const parent = await readSession(this.options.root, id)
      return new Session(parent.header, () => {}, await this.seedOf(parent), parent.events)
    } catch (error) {
      if (!isHarnessError(error)) throw error
      throw new SessionFileError(
        'SESSION_CORRUPT',
        `the fork "${child}" cannot be read without its parent: ${error.message}`,
        { cause: error },
      )
    }
  }
}
