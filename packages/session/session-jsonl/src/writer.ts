/** Appends to one session file. */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import type { Session, SessionEvent } from '@deepseek-ai/dsh-session'
import { SessionFileError, writeFailed } from './errors.ts'
import { eventLine, headerLine } from './format.ts'
import type { LockTable } from './lock.ts'
import type { SessionFile } from './reader.ts'

export interface WriterOptions {
  readonly file: string
  readonly session: Session
  readonly locks: LockTable
  /** What the file holds already, for a session that is resumed. */
  readonly stored: SessionFile | undefined
}

/** An open file that is ours to write. */
interface OpenFile {
  readonly descriptor: number
  readonly unlock: () => void
}

/**
 * Writes what the session has and the file has not, in one write for each flush.
 *
 * The writes are synchronous: a page-cache append costs a few microseconds, a trip through the
 * thread pool ten times that, and a step must not go on before its facts are written anyway.
 */
export class SessionWriter {
  private readonly options: WriterOptions
  private opened: OpenFile | undefined
  /** `seq` of the first event that is not written. */
  private next: number
  /** Bytes of the file that are whole lines. */
  private length: number
  /** Bytes behind them that a write left which failed, and could not be taken back. */
  private excess = 0
  private soon: NodeJS.Immediate | undefined

  constructor(options: WriterOptions) {
    const { session, stored } = options
    this.options = options
    this.next = (session.header.seedLength ?? 0) + (stored?.events.length ?? 0)
    this.length = stored?.length ?? 0
  }

  /**
   * Takes the file; a flush does it when nobody did.
   * @throws SessionFileError `SESSION_IN_USE`, `SESSION_EXISTS`, `SESSION_CHANGED`, `SESSION_WRITE_FAILED`.
   */
  open(): OpenFile {
    if (this.opened !== undefined) return this.opened
    const { file, locks } = this.options
    let unlock: (() => void) | undefined
    try {
      unlock = locks.take(file)
      this.opened = { descriptor: this.openFile(), unlock }
      return this.opened
    } catch (error) {
      unlock?.()
      throw asFileError(file, error)
    }
  }

  /**
   * Writes when the event loop turns, unless a flush comes first: a model that takes long to answer
   * must not keep a child's id and its task off the disk.
   */
  writeSoon(): void {
    this.soon ??= setImmediate(() => {
      try {
        this.flush()
      } catch {
        // The flush of the step or of the turn fails for the same reason, and tells it.
      }
    })
  }

  /** @throws SessionFileError as {@link open}; a later flush tries again. */
  flush(): void {
    clearImmediate(this.soon)
    this.soon = undefined
    const { file, session } = this.options
    const end = session.length
    if (this.next === end) return
    const wasOpen = this.opened !== undefined
    const { descriptor } = this.open()
    if (wasOpen) this.assertUnchanged(descriptor, this.length + this.excess)
    let lines = this.length === 0 ? headerLine(session.header) : ''
    for (let seq = this.next; seq < end; seq += 1) {
      lines += eventLine(session.at(seq) as SessionEvent)
    }
    const bytes = Buffer.from(lines)
    let done = 0
    try {
      while (done < bytes.length) {
        done += writeSync(descriptor, bytes, done, bytes.length - done, this.length + done)
      }
    } catch (error) {
      const isTakenBack = failureOf(() => ftruncateSync(descriptor, this.length)) === undefined
      this.excess = isTakenBack ? 0 : Math.max(done, this.excess)
      throw writeFailed(file, error)
    }
    this.length += bytes.length
    this.excess = 0
    this.next = end
  }

  /** Flushes, and lets go of the file, whatever fails. @throws what failed first. */
  close(): void {
    const flushFailure = failureOf(() => this.flush())
    const closeFailure = this.letGo()
    const failure = flushFailure ?? closeFailure
    if (failure !== undefined) throw asFileError(this.options.file, failure)
  }

  private letGo(): Error | undefined {
    const { opened } = this
    if (opened === undefined) return undefined
    this.opened = undefined
    const failure = failureOf(() => closeSync(opened.descriptor))
    // A file that never got its first line is no session; when it stays, readers take it for none.
    if (this.length === 0) failureOf(() => rmSync(this.options.file, { force: true }))
    opened.unlock()
    return failure
  }

  private openFile(): number {
    const { file } = this.options
    const isNew = this.length === 0
    let descriptor: number | undefined
    try {
      descriptor = openSync(file, isNew ? 'wx' : 'r+', 0o600)
      if (!isNew) this.setTornAside(descriptor)
      return descriptor
    } catch (error) {
      const open = descriptor
      if (open !== undefined) failureOf(() => closeSync(open))
      if (!isNew || (error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      throw new SessionFileError('SESSION_EXISTS', `"${file}" belongs to another session`)
    }
  }

  /** Keeps the unfinished line beside the file, so that nothing is lost by going on after it. */
  private setTornAside(descriptor: number): void {
    const { length } = this
    const torn = this.options.stored?.torn
    this.assertUnchanged(descriptor, length + (torn?.bytes.length ?? 0))
    if (torn === undefined) return
    writeFileSync(`${this.options.file}.torn-${Date.now()}`, torn.bytes, { mode: 0o600 })
    ftruncateSync(descriptor, length)
  }

  /** What anybody else has written must not be overwritten. @throws SessionFileError `SESSION_CHANGED`. */
  private assertUnchanged(descriptor: number, length: number): void {
    const { size, nlink } = fstatSync(descriptor)
    if (size === length && nlink > 0) return
    const { file } = this.options
    const what = nlink > 0 ? `has ${size} bytes in place of ${length}` : 'was removed'
    throw new SessionFileError(
      'SESSION_CHANGED',
      `"${file}" ${what}: somebody else has changed it, so nothing more is written to it`,
    )
  }
}

/** What a step throws, for where another failure is the one to tell. */
function failureOf(step: () => void): Error | undefined {
  try {
    step()
    return undefined
  } catch (error) {
    return error as Error
  }
}

function asFileError(file: string, error: unknown): SessionFileError {
  return error instanceof SessionFileError ? error : writeFailed(file, error)
}
