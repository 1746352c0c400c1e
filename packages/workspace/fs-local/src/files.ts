/** Reads and changes the files of a workspace, for agents that must read before they write. */
import { createHash, randomUUID } from 'node:crypto'
import { type BigIntStats, constants, lstatSync, renameSync } from 'node:fs'
import { access, chmod, lstat, mkdir, open, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { FsError, fsErrorOf, quote, systemCodeOf } from './errors.ts'
import { locate, type Place } from './paths.ts'
import {
  decodeText,
  type Edit,
  editText,
  inFormOf,
  requireFits,
  requireWellFormed,
} from './text.ts'

/** Whose workspace it is; what an agent has read is remembered as long as this object lives. */
export interface FsAgent {
  /** Absolute path of the workspace. */
  readonly cwd: string
}

/** The content of one file at one moment. */
export interface Content {
  readonly place: Place
  readonly bytes: Buffer
}

interface Snapshot extends Content {
  readonly stats: BigIntStats
}

/** A change that was made. */
export interface Change {
  /** Relative to the workspace, or absolute outside of it. */
  readonly path: string
  readonly bytes: number
}

/** Loads and replaces files; each agent has its own record of what it has read. */
export class FileAccess {
  private readonly seen = new WeakMap<FsAgent, Map<string, string>>()
  private readonly extraRoots: readonly string[]
  private readonly maxFileBytes: number

  constructor(options: { readonly extraRoots: readonly string[]; readonly maxFileBytes: number }) {
    this.extraRoots = options.extraRoots
    this.maxFileBytes = options.maxFileBytes
  }

  /** @throws FsError `OUTSIDE_WORKSPACE`, `INVALID_PATH`, `PERMISSION_DENIED`. */
  locate(agent: FsAgent, path: string): Promise<Place> {
    return locate(agent.cwd, path, this.extraRoots)
  }

  /** The whole file; binary ones too. Does not count as read by the agent. */
  async load(agent: FsAgent, path: string, signal?: AbortSignal): Promise<Content> {
    const place = await this.locate(agent, path)
    return this.take(place, signal)
  }

  /** The whole text; the agent may change the file from now on. */
  async loadText(
    agent: FsAgent,
    path: string,
    signal?: AbortSignal,
  ): Promise<{ readonly place: Place; readonly text: string }> {
    const { place, bytes } = await this.load(agent, path, signal)
    const text = decodeText(bytes, place.shown)
    this.remember(agent, place, bytes)
    return { place, text }
  }

  async write(
    agent: FsAgent,
    path: string,
    text: string,
    signal?: AbortSignal,
  ): Promise<Change & { readonly isNew: boolean }> {
    const place = await this.locate(agent, path)
    requireWellFormed(text, place.shown)
    const current = await this.takeRead(agent, place, signal)
    const formed =
      current === undefined ? text : inFormOf(decodeText(current.bytes, place.shown), text)
    const change = await this.replace(agent, place, formed, current, signal)
    return { ...change, isNew: current === undefined }
  }

  async edit(
    agent: FsAgent,
    path: string,
    edit: Edit,
    signal?: AbortSignal,
  ): Promise<Change & { readonly lines: readonly number[] }> {
    const place = await this.locate(agent, path)
    const current = await this.takeRead(agent, place, signal)
    if (current === undefined) {
      throw new FsError('FILE_NOT_FOUND', `${quote(place.shown)} does not exist: write it instead`)
    }
    const { shown } = place
    const before = decodeText(current.bytes, shown)
    const { text, lines } = editText(before, edit, shown, this.maxFileBytes)
    const change = await this.replace(agent, place, text, current, signal)
    return { ...change, lines }
  }

  /** The file as it is, when the agent has read it as it is; absent when there is none. */
  private async takeRead(
    agent: FsAgent,
    place: Place,
    signal: AbortSignal | undefined,
  ): Promise<Snapshot | undefined> {
    const stats = await statsOf(place)
    if (stats === undefined) return undefined
    requireFile(stats, place)
    const read = this.seen.get(agent)?.get(place.real)
    if (read === undefined) {
      throw new FsError('NOT_READ', `you have not read ${quote(place.shown)}: read it first`)
    }
    const snapshot = await this.take(place, signal)
    if (hashOf(snapshot.bytes) !== read) throw staleError(place)
    return snapshot
  }

  private async take(place: Place, signal: AbortSignal | undefined): Promise<Snapshot> {
    signal?.throwIfAborted()
    try {
      // Asked before it is opened: to open a device can already have an effect.
      this.requireSmall(await lstat(place.real, { bigint: true }), place)
      const handle = await open(place.real, openFlags)
      try {
        const stats = await handle.stat({ bigint: true })
        this.requireSmall(stats, place)
        // A file may grow, or hide its size as those of /proc do: one byte too many tells.
        const stream = handle.createReadStream({ end: this.maxFileBytes, autoClose: false, signal })
        const bytes = Buffer.concat(await stream.toArray({ signal }))
        if (bytes.length > this.maxFileBytes) throw this.tooLarge(place, bytes.length)
        return { place, bytes, stats }
      } finally {
        await handle.close()
      }
    } catch (error) {
      signal?.throwIfAborted()
      throw fsErrorOf(error, place.shown)
    }
  }

  private requireSmall(stats: BigIntStats, place: Place): void {
    requireFile(stats, place)
    if (stats.size > this.maxFileBytes) throw this.tooLarge(place, stats.size)
  }

  private tooLarge({ shown }: Place, size: bigint | number): FsError {
    return new FsError(
      'FILE_TOO_LARGE',
      `${quote(shown)} has ${size} bytes or more, the limit is ${this.maxFileBytes}: search it with grep instead`,
    )
  }

  /** Puts a new file in the place of `current`, all or nothing. */
  private async replace(
    agent: FsAgent,
    place: Place,
    text: string,
    current: Snapshot | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Change> {
    const bytes = Buffer.from(text)
    requireFits(bytes.length, this.maxFileBytes, place.shown)
    const folder = dirname(place.real)
    const temporary = join(folder, `.dsh-${randomUUID()}.tmp`)
    const mode = current === undefined ? 0o666 : Number(current.stats.mode & 0o7777n)
    try {
      if (current === undefined) await mkdir(folder, { recursive: true })
      else await access(place.real, constants.W_OK)
      signal?.throwIfAborted()
      await writeFile(temporary, bytes, { flag: 'wx', mode, signal })
      // The umask took bits away when the file was made.
      if (current !== undefined) await chmod(temporary, mode)
      signal?.throwIfAborted()
      swap(temporary, place, current?.stats)
    } catch (error) {
      // Where nothing could be made there is nothing to remove; the first failure is the one to tell.
      await rm(temporary, { force: true }).catch(() => {})
      signal?.throwIfAborted()
      throw fsErrorOf(error, place.shown)
    }
    this.remember(agent, place, bytes)
    return { path: place.shown, bytes: bytes.length }
  }

  private remember(agent: FsAgent, place: Place, bytes: Buffer): void {
    const files = this.seen.get(agent) ?? new Map<string, string>()
    files.set(place.real, hashOf(bytes))
    this.seen.set(agent, files)
  }
}

/** A file that became a link or a pipe meanwhile must neither be followed nor waited for. */
const openFlags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** Checks and renames in one tick, so that no other agent of this process comes in between. */
function swap(temporary: string, place: Place, before: BigIntStats | undefined): void {
  const now = lstatSync(place.real, { bigint: true, throwIfNoEntry: false })
  if (!isSame(before, now)) throw staleError(place)
  renameSync(temporary, place.real)
}

function isSame(before: BigIntStats | undefined, now: BigIntStats | undefined): boolean {
  if (before === undefined || now === undefined) return before === now
  const keys = ['dev', 'ino', 'size', 'mtimeNs', 'ctimeNs'] as const
  return keys.every((key) => before[key] === now[key])
}

/** @throws FsError `NOT_A_FILE`: pipes and devices may block for ever, or do harm. */
function requireFile(stats: BigIntStats, { shown }: Place): void {
  if (stats.isFile()) return
  throw stats.isDirectory()
    ? new FsError('NOT_A_FILE', `${quote(shown)} is a folder: name a file in it`)
    : new FsError('NOT_A_FILE', `${quote(shown)} is a pipe, socket or device: name a regular file`)
}

async function statsOf(place: Place): Promise<BigIntStats | undefined> {
  try {
    return await lstat(place.real, { bigint: true })
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined
    throw fsErrorOf(error, place.shown)
  }
}

function staleError({ shown }: Place): FsError {
  return new FsError(
    'STALE_FILE',
    `${quote(shown)} was changed by someone else since you read it: read it again, then repeat the change`,
  )
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64')
}
