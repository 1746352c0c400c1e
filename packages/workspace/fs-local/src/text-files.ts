/** Texts that somebody else keeps for an agent, such as an editor whose buffers are not saved. */
import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { FsError, fsErrorOf, quote, staleError } from './errors.ts'
import type { Place } from './paths.ts'

/** Loads and saves whole texts in the place of the disk; both reject soon once the signal is aborted. */
export interface TextFiles {
  /** With what is not saved yet; absent when there is no such file. @param path absolute. */
  load(path: string, signal?: AbortSignal): Promise<string | undefined>
  /** Creates the file, or replaces its whole text. @param path absolute. */
  save(path: string, text: string, signal?: AbortSignal): Promise<void>
}

/** One access to a file that is kept elsewhere. */
export interface KeptAccess {
  readonly files: TextFiles
  readonly cwd: string
  readonly place: Place
  readonly signal: AbortSignal | undefined
}

/** @throws FsError `FILE_NOT_FOUND`, `FILE_FAILED`. @param isOnDisk what the disk says. */
export async function loadKept(
  { files, cwd, place, signal }: KeptAccess,
  isOnDisk: boolean,
): Promise<string | undefined> {
  const { shown } = place
  signal?.throwIfAborted()
  try {
    const text = await files.load(pathOf(cwd, place), signal)
    if (isOnDisk && text === undefined) {
      throw new FsError(
        'FILE_NOT_FOUND',
        `${quote(shown)} is on the disk, but the editor says that it is not there: tell the user`,
      )
    }
    // Editors answer for a file that is not there with nothing, or with any error.
    return text === '' && !isOnDisk ? undefined : text
  } catch (error) {
    signal?.throwIfAborted()
    if (!isOnDisk) return undefined
    throw failure(error, `${quote(shown)} cannot be read`)
  }
}

/** Saves of files that are kept elsewhere: of several that overlap one wins, as on the disk. */
export class KeptSaves {
  private readonly counts = new Map<string, number>()

  /** Changes whenever a save of the file begins or ends. */
  countOf({ real }: Place): number {
    return this.counts.get(real) ?? 0
  }

  /** @param count as it was before the file was loaded. @throws FsError `STALE_FILE`, `FILE_FAILED`. */
  async save(
    { files, cwd, place, signal }: KeptAccess,
    text: string,
    count: number,
  ): Promise<void> {
    const isStale = count % 2 === 1 || count !== this.countOf(place)
    if (isStale) throw staleError(place.shown)
    this.counts.set(place.real, count + 1)
    try {
      signal?.throwIfAborted()
      await mkdir(dirname(place.real), { recursive: true })
      signal?.throwIfAborted()
      await files.save(pathOf(cwd, place), text, signal)
    } catch (error) {
      signal?.throwIfAborted()
      throw failure(fsErrorOf(error, place.shown), `${quote(place.shown)} cannot be written`)
    } finally {
      this.counts.set(place.real, count + 2)
    }
  }
}

/** As the keeper knows the file: below the folder of the session, which may be a link. */
function pathOf(cwd: string, { shown }: Place): string {
  return resolve(cwd, shown)
}

function failure(error: unknown, what: string): FsError {
  if (error instanceof FsError) return error
  return new FsError('FILE_FAILED', `${what}: ${messageOf(error)}`, { cause: error })
}
