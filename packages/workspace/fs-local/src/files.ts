/** Reads and changes the files of a workspace, for agents that must read before they write. */
import { createHash, randomUUID } from 'node:crypto'
import { type BigIntStats, constants, lstatSync, renameSync } from 'node:fs'
import { access, chmod, lstat, mkdir, open, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { FsError, fsErrorOf, quote, staleError, systemCodeOf } from './errors.ts'
import { locate, type Place } from './paths.ts'
import { type KeptAccess, KeptSaves, loadKept, type TextFiles } from './text-files.ts'
import {
  decodeText,
  type Edit,
  editText,
  inFormOf,
  requireFits,
  requireWellFormed,
  toLf,
  withoutMark,
} from './text.ts'

/** Whose workspace it is; what an agent has read is remembered as long as this object lives. */
export interface FsAgent {
  /** Absolute path of the workspace. */
  readonly cwd: string
  /** Of its session; absent for whoever is no agent. */
  readonly id?: string
}

/** The content of one file at one moment. */
export interface Content {
  readonly place: Place
  readonly bytes: Buffer
}

interface Snapshot extends Content {
  /** The same as long as nobody changes the text. */
  readonly hash: string
  /** Absent when the disk has no such file. */
  readonly stats?: BigIntStats
}

/** A change that was made. */
export interface Change {
  /** Relative to the workspace, or absolute outside of it. */
  readonly path: string
  readonly bytes: number
}

export interface FileAccessOptions {
  readonly extraRoots: readonly string[]
  readonly maxFileBytes: number
  /** Who keeps the texts of an agent; absent: the disk. */
  readonly keeperOf: (agent: FsAgent) => TextFiles | undefined
}

/** Loads and replaces files; each agent has its own record of what it has read. */
export class FileAccess {
  private readonly seen = new WeakMap<FsAgent, Map<string, string>>()
  private readonly saves = new KeptSaves()
  private readonly options: FileAccessOptions

  constructor(options: FileAccessOptions) {
    this.options = options
  }

  /** @throws FsError `OUTSIDE_WORKSPACE`, `INVALID_PATH`, `PERMISSION_DENIED`. */
  locate(agent: FsAgent, path: string): Promise<Place> {
    return locate(agent.cwd, path, this.options.extraRoots)
  }

  /** The whole file; binary ones too. Does not count as read by the agent. */
  async load(agent: FsAgent, path: string, signal?: AbortSignal): Promise<Content> {
    const place = await this.locate(agent, path)
    return this.take(place, signal)
  }

  /** The whole text, from where it is kept. @param isRead whether the agent may change it from now on. */
  async loadText(
    agent: FsAgent,
    path: string,
    { isRead, signal }: { readonly isRead: boolean; readonly signal?: AbortSignal | undefined },
  ): Promise<{ readonly place: Place; readonly text: string }> {
    const place = await this.locate(agent, path)
    const kept = this.keptFor(agent, place, signal)
    const isOnDisk = kept === undefined || (await statsOf(place)) !== undefined
    const { bytes, hash } =
      // Only the disk's own error says why there is nothing.
      (kept && (await this.takeKept(kept, isOnDisk))) ?? (await this.take(place, signal))
    const text = decodeText(bytes, place.shown)
    if (isRead) this.remember(agent, place, hash)
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
    return this.change(agent, place, signal, (before) =>
      before === undefined ? text : inFormOf(before, text),
    )
  }

  async edit(
    agent: FsAgent,
    path: string,
    edit: Edit,
    signal?: AbortSignal,
  ): Promise<Change & { readonly lines: readonly number[] }> {
    const place = await this.locate(agent, path)
    const { shown } = place
    let lines: readonly number[] = []
    const change = await this.change(agent, place, signal, (before) => {
      if (before === undefined) {
        throw new FsError('FILE_NOT_FOUND', `${quote(shown)} does not exist: write it instead`)
      }
      const edited = editText(before, edit, shown, this.options.maxFileBytes)
      lines = edited.lines
      return edited.text
    })
    return { path: change.path, bytes: change.bytes, lines }
  }

  /** @param textFor the new text, of what the file holds; absent when there is none. */
  private async change(
    agent: FsAgent,
    place: Place,
    signal: AbortSignal | undefined,
    textFor: (before: string | undefined) => string,
  ): Promise<Change & { readonly isNew: boolean }> {
    const kept = this.keptFor(agent, place, signal)
    const count = this.saves.countOf(place)
    const current = await this.takeRead(agent, place, kept, signal)
    const text = textFor(current && decodeText(current.bytes, place.shown))
    const bytes = Buffer.from(text)
    requireFits(bytes.length, this.options.maxFileBytes, place.shown)
    if (kept === undefined) await replace(place, bytes, current, signal)
    else await this.saves.save(kept, text, count)
    this.remember(agent, place, kept === undefined ? hashOf(bytes) : hashOfKept(text))
    return { path: place.shown, bytes: bytes.length, isNew: current === undefined }
  }

  /** The file as it is, when the agent has read it as it is; absent when there is none. */
  private async takeRead(
    agent: FsAgent,
    place: Place,
    kept: KeptAccess | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Snapshot | undefined> {
    const stats = await statsOf(place)
    if (stats !== undefined) requireFile(stats, place)
    else if (kept === undefined) return undefined
    const read = this.seen.get(agent)?.get(place.real)
    if (stats !== undefined && read === undefined) throw notReadError(place)
    const snapshot =
      kept === undefined
        ? await this.take(place, signal)
        : await this.takeKept(kept, stats !== undefined)
    if (snapshot === undefined) return undefined
    if (read === undefined) throw notReadError(place)
    if (snapshot.hash !== read) throw staleError(place.shown)
    return snapshot
  }

  private keptFor(
    agent: FsAgent,
    place: Place,
    signal: AbortSignal | undefined,
  ): KeptAccess | undefined {
    const files = this.options.keeperOf(agent)
    return files && { files, cwd: agent.cwd, place, signal }
  }

  /** What the disk has decides whether there is a text at all. */
  private async takeKept(kept: KeptAccess, isOnDisk: boolean): Promise<Snapshot | undefined> {
    const { place, signal } = kept
    if (isOnDisk) decodeText((await this.take(place, signal)).bytes, place.shown)
    const text = await loadKept(kept, isOnDisk)
    if (text === undefined) return undefined
    const bytes = Buffer.from(text)
    if (bytes.length > this.options.maxFileBytes) throw this.tooLarge(place, bytes.length)
    return { place, bytes, hash: hashOfKept(text) }
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
        const stream = handle.createReadStream({
          end: this.options.maxFileBytes,
          autoClose: false,
          signal,
        })
        const bytes = Buffer.concat(await stream.toArray({ signal }))
        if (bytes.length > this.options.maxFileBytes) throw this.tooLarge(place, bytes.length)
        return { place, bytes, hash: hashOf(bytes), stats }
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
    if (stats.size > this.options.maxFileBytes) throw this.tooLarge(place, stats.size)
  }

  private tooLarge({ shown }: Place, size: bigint | number): FsError {
    return new FsError(
      'FILE_TOO_LARGE',
      `${quote(shown)} has ${size} bytes or more, the limit is ${this.options.maxFileBytes}: search it with grep instead`,
    )
  }

  private remember(agent: FsAgent, place: Place, hash: string): void {
    const files = this.seen.get(agent) ?? new Map<string, string>()
    files.set(place.real, hash)
    this.seen.set(agent, files)
  }
}

/** A file that became a link or a pipe meanwhile must neither be followed nor waited for. */
const openFlags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** Puts a new file in the place of `current`, all or nothing. */
async function replace(
  place: Place,
  bytes: Buffer,
  current: Snapshot | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  const folder = dirname(place.real)
  const temporary = join(folder, `.dsh-${randomUUID()}.tmp`)
  const before = current?.stats
  const mode = before === undefined ? 0o666 : Number(before.mode & 0o7777n)
  try {
    if (before === undefined) await mkdir(folder, { recursive: true })
    else await access(place.real, constants.W_OK)
    signal?.throwIfAborted()
    await writeFile(temporary, bytes, { flag: 'wx', mode, signal })
    // The umask took bits away when the file was made.
    if (before !== undefined) await chmod(temporary, mode)
    signal?.throwIfAborted()
    swap(temporary, place, before)
  } catch (error) {
    // Where nothing could be made there is nothing to remove; the first failure is the one to tell.
    await rm(temporary, { force: true }).catch(() => {})
    signal?.throwIfAborted()
    throw fsErrorOf(error, place.shown)
  }
}

/** Checks and renames in one tick, so that no other agent of this process comes in between. */
function swap(temporary: string, place: Place, before: BigIntStats | undefined): void {
  const now = lstatSync(place.real, { bigint: true, throwIfNoEntry: false })
  if (!isSame(before, now)) throw staleError(place.shown)
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

function notReadError({ shown }: Place): FsError {
  return new FsError('NOT_READ', `you have not read ${quote(shown)}: read it first`)
}

/** An editor may give other line ends than it was given, and drop the mark. */
function hashOfKept(text: string): string {
  return hashOf(Buffer.from(toLf(withoutMark(text))))
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64')
}
