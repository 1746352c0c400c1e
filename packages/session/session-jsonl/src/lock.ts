/** Keeps two processes from writing one session. */
import { linkSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { SessionFileError } from './errors.ts'

/** Tells this process from an earlier one with the same pid, as containers have them. */
const bornAt = Math.round(performance.timeOrigin)

/** The locks that one store holds: beside each session that it writes, a file that names its process. */
export class LockTable {
  private readonly held = new Set<string>()

  /**
   * Takes the lock of a session file until the returned function is called; a lock whose process is
   * gone is taken over.
   * @throws SessionFileError `SESSION_IN_USE` naming the process, and what the file system throws.
   */
  take(file: string): () => void {
    const lock = lockOf(file)
    if (!this.create(lock)) {
      assertUnowned(file)
      rmSync(lock, { force: true })
      if (!this.create(lock)) throw inUse(file, lockOwner(file))
    }
    this.held.add(lock)
    return () => {
      this.held.delete(lock)
      removeLock(lock)
    }
  }

  /**
   * Links the lock to one that is held, and to a new file only when there is none: no reader ever
   * sees a lock without its content, and a link costs a tenth of a file.
   * @returns false when there is a lock already.
   */
  private create(lock: string): boolean {
    const [held] = this.held
    const result = held === undefined ? 'failed' : link(held, lock)
    if (result !== 'failed') return result === 'linked'
    const source = `${lock}.${process.pid}`
    writeFileSync(source, `${process.pid} ${bornAt}\n`, { mode: 0o600 })
    try {
      linkSync(source, lock)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
      throw error
    } finally {
      rmSync(source, { force: true })
    }
  }
}

/** The process that writes a session file; absent when none that lives does. */
export function lockOwner(file: string): number | undefined {
  const [pid, birth] = readLock(file)
  if (pid === undefined || !Number.isSafeInteger(pid) || pid <= 0) return undefined
  if (pid === process.pid) return birth === bornAt ? pid : undefined
  try {
    process.kill(pid, 0)
    return pid
  } catch (error) {
    // It lives, but belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? pid : undefined
  }
}

/** @throws SessionFileError `SESSION_IN_USE`. */
export function assertUnowned(file: string): void {
  const owner = lockOwner(file)
  if (owner !== undefined) throw inUse(file, owner)
}

function lockOf(file: string): string {
  return `${file}.lock`
}

function removeLock(lock: string): void {
  try {
    unlinkSync(lock)
  } catch {
    // Whoever removed it, or the folder, has only done it before us; a lock that stays is stale.
  }
}

function link(from: string, to: string): 'linked' | 'exists' | 'failed' {
  try {
    linkSync(from, to)
    return 'linked'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EEXIST' ? 'exists' : 'failed'
  }
}

function readLock(file: string): number[] {
  try {
    return readFileSync(lockOf(file), 'utf8').trim().split(' ').map(Number)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function inUse(file: string, owner: number | undefined): SessionFileError {
  const writer = owner === undefined ? 'another process' : `process ${owner}`
  return new SessionFileError(
    'SESSION_IN_USE',
    `"${file}" is being written by ${writer}: end it, or go on with another session`,
  )
}
