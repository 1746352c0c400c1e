/** Appends to one session file. */
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '@deepseek-ai/dsh-llm'
import type { Session, SessionEvent } from '@deepseek-ai/dsh-session'
import { SessionFileError } from './errors.ts'
import { eventLine, headerLine } from './format.ts'
import { lockFile } from './lock.ts'
import type { SessionFile } from './reader.ts'

/**
 * Gathers events and writes them at each flush, in one write.
 *
 * The writes are synchronous: a page-cache append costs a few microseconds, a trip through the
 * thread pool ten times that, and a step must not go on before its facts are written anyway.
 */
export class SessionWriter {
  private readonly file: string
  private readonly session: Session
  private pending: SessionEvent[]
  private descriptor: number | undefined
  private unlock: (() => void) | undefined
  /** Bytes of the file that are whole lines. */
  private length: number
  private isNew: boolean
  private torn: SessionFile['torn']

  /** @param stored what the file holds already, for a session that is resumed. */
  constructor(file: string, session: Session, stored?: SessionFile) {
    this.file = file
    this.session = session
    this.isNew = stored === undefined
    this.length = stored?.length ?? 0
    this.torn = stored?.torn
    const first = session.header.seedLength ?? 0
    this.pending = [...session.events(first + (stored?.events.length ?? 0))]
  }

  append(event: SessionEvent): void {
    this.pending.push(event)
  }

  /** @throws SessionFileError `SESSION_EXISTS`, `SESSION_IN_USE`, and what the file system throws; a later flush tries again. */
  flush(): void {
    if (this.pending.length === 0) return
    const descriptor = this.open()
    const header = this.isNew ? headerLine(this.session.header) : ''
    const bytes = Buffer.from(header + this.pending.map(eventLine).join(''))
    try {
      for (let done = 0; done < bytes.length;) {
        done += writeSync(descriptor, bytes, done, bytes.length - done, this.length + done)
      }
    } catch (error) {
      this.cutBack(descriptor)
      throw new Error(`cannot write "${this.file}": ${messageOf(error)}`, { cause: error })
    }
    this.length += bytes.length
    this.pending = []
    this.isNew = false
  }

  /** Flushes, and lets go of the file. */
  close(): void {
    try {
      this.flush()
    } finally {
      if (this.descriptor !== undefined) closeSync(this.descriptor)
      this.descriptor = undefined
      this.unlock?.()
      this.unlock = undefined
    }
  }

  private open(): number {
    if (this.descriptor !== undefined) return this.descriptor
    mkdirSync(dirname(this.file), { recursive: true })
    if (this.isNew && existsSync(this.file)) {
      throw new SessionFileError('SESSION_EXISTS', `"${this.file}" belongs to another session`)
    }
    // Children are only ever written by the process that runs their parent.
    if (this.session.header.delegationDepth === 0) this.unlock ??= lockFile(this.file)
    this.descriptor = openSync(this.file, this.isNew ? 'wx' : 'r+', 0o600)
    this.setTornAside(this.descriptor)
    return this.descriptor
  }

  /** Keeps the unfinished line beside the file, so that nothing is lost by going on after it. */
  private setTornAside(descriptor: number): void {
    if (this.torn === undefined) return
    writeFileSync(`${this.file}.torn-${Date.now()}`, this.torn.bytes, { mode: 0o600 })
    ftruncateSync(descriptor, this.length)
    this.torn = undefined
  }

  /** Takes back a write that failed half-way. */
  private cutBack(descriptor: number): void {
    if (this.isNew) {
      closeSync(descriptor)
      this.descriptor = undefined
      rmSync(this.file, { force: true })
    } else {
      ftruncateSync(descriptor, this.length)
    }
  }
}
