/** Appends to one session file. */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { Session } from '@deepseek-ai/dsh-session'
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
    let unlock: (() => void) | undefined
    try {
      unlock = this.lock()
      this.opened = { descriptor: this.openFile(), unlock }
      return this.opened
    } catch (error) {
      unlock?.()
      throw error instanceof SessionFileError ? error : writeFailed(this.options.file, error)
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
    const { descriptor } = this.open()
    const header = this.length === 0 ? headerLine(session.header) : ''
    const lines = Array.from(session.events(this.next), eventLine)
    const bytes = Buffer.from(header + lines.join(''))
    this.assertUnchanged(descriptor, this.length)
    try {
      for (let done = 0; done < bytes.length;) {
        done += writeSync(descriptor, bytes, done, bytes.length - done, this.length + done)
      }
    } catch (error) {
      this.takeBack(descriptor)
      throw writeFailed(file, error)
    }
    this.length += bytes.length
    this.next = end
  }

  /** Flushes, and lets go of the file. */
  close(): void {
    try {
      this.flush()
    } finally {
      const { opened } = this
      this.opened = undefined
      if (opened !== undefined) {
        closeSync(opened.descriptor)
        opened.unlock()
      }
    }
  }

  /** Makes the folder when it is not there. */
  private lock(): () => void {
    const { file, locks } = this.options
    try {
      return locks.take(file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      return locks.take(file)
    }
  }

  private openFile(): number {
    const { file } = this.options
    const isNew = this.length === 0
    let descriptor: number | undefined
    try {
      descriptor = openSync(file, isNew ? 'wx' : 'r+', 0o600)
      this.setTornAside(descriptor)
      return descriptor
    } catch (error) {
      if (descriptor !== undefined) closeSync(descriptor)
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
    // A file that is still to get its first line was made by the same call.
    if (length === 0) return
    const { size, nlink } = fstatSync(descriptor)
    if (size === length && nlink > 0) return
    const { file } = this.options
    const what = nlink > 0 ? `has ${size} bytes in place of ${length}` : 'was removed'
    throw new SessionFileError(
      'SESSION_CHANGED',
      `"${file}" ${what}: somebody else has changed it, so nothing more is written to it`,
    )
  }

  /** Undoes a write that failed half-way. */
  private takeBack(descriptor: number): void {
    if (this.length > 0) {
      ftruncateSync(descriptor, this.length)
      return
    }
    const { opened } = this
    this.opened = undefined
    closeSync(descriptor)
    rmSync(this.options.file, { force: true })
    opened?.unlock()
  }
}
