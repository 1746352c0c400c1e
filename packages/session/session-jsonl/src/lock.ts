/** Keeps two processes from writing one session. */
import { randomUUID } from 'node:crypto'
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { SessionFileError } from './errors.ts'
import { livingOwner, ownMark } from './owner.ts'

/** The file that all locks of a table are links to. */
interface Anchor {
  readonly path: string
  readonly inode: number
}

/**
 * The locks that one store holds: beside each session that it writes, a file that names its process.
 *
 * A lock is a hard link to one file that the table keeps: it is made in one step with all that it
 * says, and it makes and frees no inode, which is what costs on a busy disk.
 */
export class LockTable {
  private readonly folder: string
  private anchor: Anchor | undefined
  private held = 0
  private isRetired = false

  /** @param root folder of the session files; made when the first lock is taken. */
  constructor(root: string) {
    this.folder = join(root, '.writers')
  }

  /**
   * Takes the lock of a session file until the returned function is called; a lock whose process is
   * gone is taken over.
   * @throws SessionFileError `SESSION_IN_USE` naming the process, and what the file system throws.
   */
  take(file: string): () => void {
    const lock = lockOf(file)
    const inode = this.acquire(lock, file)
    this.held += 1
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      release(lock, inode)
      this.held -= 1
      if (this.isRetired) this.removeAnchor()
    }
  }

  /** Leaves nothing in the folder once the last lock is given back. */
  retire(): void {
    this.isRetired = true
    this.removeAnchor()
  }

  /** @returns the inode of the lock, which is ours then. */
  private acquire(lock: string, file: string): number {
    const inode = this.link(lock)
    if (inode !== undefined) return inode
    refuseLiving(lock, file)
    // Of all that find its process gone, one at a time may look again and put its own in the place.
    const guard = `${lock}.takeover`
    const guardInode = this.acquire(guard, file)
    try {
      return this.replace(lock, file)
    } finally {
      release(guard, guardInode)
    }
  }

  /** Only whoever has the guard of a lock removes it for its process. */
  private replace(lock: string, file: string): number {
    // One that is not there any more is nobody's to remove: the next may be somebody's.
    if (refuseLiving(lock, file) === 'stale') rmSync(lock)
    const inode = this.link(lock)
    if (inode === undefined) throw inUse(file, ownerOf(lock))
    return inode
  }

  /** Absent when there is a lock already. */
  private link(lock: string): number | undefined {
    try {
      return linkTo((this.anchor ??= this.createAnchor()), lock)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      // The folder was moved or removed.
      return linkTo((this.anchor = this.createAnchor()), lock)
    }
  }

  private createAnchor(): Anchor {
    const { folder } = this
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    // What processes left that were killed.
    for (const name of readdirSync(folder)) {
      if (livingOwner(name.replace('-', ' ').replace(/-.*/, '')) === undefined) {
        rmSync(join(folder, name), { force: true })
      }
    }
    const path = join(folder, `${ownMark.replace(' ', '-')}-${randomUUID()}`)
    writeFileSync(path, `${ownMark}\n`, { mode: 0o600, flag: 'wx' })
    return { path, inode: statSync(path).ino }
  }

  private removeAnchor(): void {
    const { anchor } = this
    if (anchor === undefined || this.held > 0) return
    this.anchor = undefined
    release(anchor.path, anchor.inode)
  }
}

/** The process that writes a session file; absent when none that lives does. */
export function lockOwner(file: string): number | undefined {
  return ownerOf(lockOf(file))
}

/** @throws SessionFileError `SESSION_IN_USE`. */
export function assertUnowned(file: string): void {
  refuseLiving(lockOf(file), file)
}

function lockOf(file: string): string {
  return `${file}.lock`
}

function linkTo({ path, inode }: Anchor, lock: string): number | undefined {
  try {
    linkSync(path, lock)
    return inode
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw error
  }
}

function refuseLiving(lock: string, file: string): 'stale' | 'free' {
  const mark = markIn(lock)
  const owner = mark === undefined ? undefined : livingOwner(mark)
  if (owner !== undefined) throw inUse(file, owner)
  return mark === undefined ? 'free' : 'stale'
}

function ownerOf(lock: string): number | undefined {
  return livingOwner(markIn(lock) ?? '')
}

function markIn(lock: string): string | undefined {
  try {
    return readFileSync(lock, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Never throws. A lock that is not ours any more, as when somebody moved the folder, stays. */
function release(lock: string, inode: number): void {
  try {
    if (statSync(lock).ino === inode) unlinkSync(lock)
  } catch {
    // It is gone; or it stays, and is stale when this process is gone.
  }
}

function inUse(file: string, owner: number | undefined): SessionFileError {
  const writer = owner === undefined ? 'another process' : `process ${owner}`
  return new SessionFileError(
    'SESSION_IN_USE',
    `"${file}" is being written by ${writer}: end it, or go on with another session`,
  )
}
