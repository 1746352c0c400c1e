/** Bounded access to the files of an agent's workspace, reached through `ctx.fs`. */
import { stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { type Context, Service } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { FsError, fsErrorOf, quote } from './errors.ts'
import { type Change, FileAccess, type FsAgent } from './files.ts'
import type { Place } from './paths.ts'
import { findFiles, findLines, type Found, type LineMatch, type LineQuery } from './search.ts'
import { type Edit, type LineRange, type Lines, selectLines, withoutMark } from './text.ts'
import type { TextFiles } from './text-files.ts'

export { FsError, type FsErrorCode, quote } from './errors.ts'
export type { Change, FsAgent } from './files.ts'
export type { SearchCut } from './ripgrep.ts'
export type { Found, LineMatch, LineQuery } from './search.ts'
export type { Edit, LineRange, Lines } from './text.ts'
export type { TextFiles } from './text-files.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    fs: FsService
  }

  interface Events {
    /**
     * Asks who keeps the texts of an agent: the first listener that gives {@link TextFiles} loads and
     * saves them in the place of the disk. Which files there are, and which may be used, stays ours.
     * @mode bail
     */
    'fs/text-files'(agent: FsAgent): TextFiles | undefined
  }
}

export interface FsConfig {
  /** Absolute paths of folders that agents may use beside their workspace. */
  extraRoots: string[]
  /** Larger files are neither read nor written. */
  maxFileBytes: number
  /** A search that takes longer gives what it has found so far. */
  searchTimeoutMs: number
}

/** Where to search, and how much to bring back. */
export interface SearchOptions {
  /** Default: the workspace. */
  readonly path?: string
  readonly maxResults: number
  /** Of all results together, 8 for each one's line number and end included. */
  readonly maxBytes: number
  readonly signal?: AbortSignal
}

/** Part of a text file. */
export interface TextPart extends Lines {
  /** Relative to the workspace, or absolute outside of it. */
  readonly path: string
}

/**
 * File access for agents, each within its own workspace. Every path is relative to the agent's cwd;
 * every method rejects with a {@link FsError}, or with the signal's reason once that is aborted.
 */
export class FsService extends Service {
  static readonly Config: z<Partial<FsConfig>, FsConfig> = z.object({
    extraRoots: z.array(z.string().required()),
    maxFileBytes: z.natural().min(1).max(100_000_000).default(10_000_000),
    searchTimeoutMs: z.natural().min(1).max(600_000).default(30_000),
  })

  private readonly files: FileAccess
  private readonly timeoutMs: number

  /** @throws FsError `INVALID_ROOT`. */
  constructor(ctx: Context, { extraRoots, maxFileBytes, searchTimeoutMs }: FsConfig) {
    const relative = extraRoots.find((root) => !isAbsolute(root))
    if (relative !== undefined) {
      throw new FsError('INVALID_ROOT', `extraRoots has ${quote(relative)}: use an absolute path`)
    }
    super(ctx, 'fs')
    const { root } = ctx
    const keeperOf = (agent: FsAgent): TextFiles | undefined => root.bail('fs/text-files', agent)
    this.files = new FileAccess({ extraRoots, maxFileBytes, keeperOf })
    this.timeoutMs = searchTimeoutMs
  }

  /** Lines of a text file; afterwards the agent may change the file, until someone else does. */
  async read(
    agent: FsAgent,
    path: string,
    options: LineRange & { readonly signal?: AbortSignal },
  ): Promise<TextPart> {
    const { place, text } = await this.files.loadText(agent, path, {
      isRead: true,
      signal: options.signal,
    })
    const part = { path: place.shown, ...selectLines(withoutMark(text), options) }
    if (options.firstLine > Math.max(1, part.lineCount)) {
      const count = `${quote(place.shown)} has ${part.lineCount} lines`
      throw new FsError('OUT_OF_RANGE', `${count}, line ${options.firstLine} is past its end`)
    }
    return part
  }

  /** The whole text; this does not entitle the agent to change it. */
  async readText(agent: FsAgent, path: string, signal?: AbortSignal): Promise<string> {
    const { text } = await this.files.loadText(agent, path, { isRead: false, signal })
    return text
  }

  /** The bytes of any regular file, from the disk; this does not entitle the agent to change it. */
  async readBytes(agent: FsAgent, path: string, signal?: AbortSignal): Promise<Buffer> {
    const { bytes } = await this.files.load(agent, path, signal)
    return bytes
  }

  /** Creates a file, and the folders that it needs, or replaces the whole text of one that was read. */
  write(
    agent: FsAgent,
    path: string,
    text: string,
    signal?: AbortSignal,
  ): Promise<Change & { readonly isNew: boolean }> {
    return this.files.write(agent, path, text, signal)
  }

  /** Replaces text in a file that was read. */
  edit(
    agent: FsAgent,
    path: string,
    edit: Edit,
    signal?: AbortSignal,
  ): Promise<Change & { readonly lines: readonly number[] }> {
    return this.files.edit(agent, path, edit, signal)
  }

  /** Files that are not ignored and match; a glob without a slash matches names at any depth. */
  async glob(agent: FsAgent, glob: string, options: SearchOptions): Promise<Found<string>> {
    const { place, isFolder } = await this.searchable(agent, options)
    if (!isFolder) {
      throw new FsError(
        'NOT_A_FOLDER',
        `${quote(place.shown)} is a file: name a folder, or read it`,
      )
    }
    return findFiles(place, glob, { ...options, timeoutMs: this.timeoutMs })
  }

  /** Lines that match, of one file or of a folder's files that are not ignored. */
  async grep(agent: FsAgent, query: LineQuery, options: SearchOptions): Promise<Found<LineMatch>> {
    const { place, isFolder } = await this.searchable(agent, options)
    return findLines(place, isFolder, query, { ...options, timeoutMs: this.timeoutMs })
  }

  private async searchable(
    agent: FsAgent,
    { path = '.', signal }: SearchOptions,
  ): Promise<{ readonly place: Place; readonly isFolder: boolean }> {
    signal?.throwIfAborted()
    const place = await this.files.locate(agent, path)
    const stats = await stat(place.real).catch((error: unknown) => {
      throw fsErrorOf(error, place.shown)
    })
    if (stats.isDirectory()) return { place, isFolder: true }
    if (stats.isFile()) return { place, isFolder: false }
    throw new FsError('NOT_A_FILE', `${quote(place.shown)} is neither a file nor a folder`)
  }
}

export default FsService
