/** Decides where a path leads, and keeps agents inside their workspace. */
import { readlink, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { FsError, fsErrorOf, quote, systemCodeOf } from './errors.ts'

/** Where a path leads. */
export interface Place {
  /** Absolute, without symbolic links; it need not exist. */
  readonly real: string
  /** How it is named to an agent: relative to the workspace, absolute outside of it. */
  readonly shown: string
  /** The workspace, absolute and without symbolic links. */
  readonly workspace: string
}

/**
 * Follows a path, relative to `cwd` unless absolute, through every link to where it leads.
 * @param extraRoots absolute paths of folders that are allowed beside `cwd`.
 * @throws FsError `WORKSPACE_MISSING`, `OUTSIDE_WORKSPACE`, `INVALID_PATH`, `PERMISSION_DENIED`.
 */
export async function locate(
  cwd: string,
  path: string,
  extraRoots: readonly string[],
): Promise<Place> {
  checkPath(path)
  const workspace = await workspaceOf(cwd)
  const real = await realPathOf(resolve(workspace, path)).catch((error: unknown) => {
    throw fsErrorOf(error, path)
  })
  const place = { real, shown: shownPath(workspace, real), workspace }
  if (isInside(workspace, real)) return place
  const roots = await Promise.all(extraRoots.map((root) => realPathOf(root)))
  if (roots.some((root) => isInside(root, real))) return place
  throw new FsError(
    'OUTSIDE_WORKSPACE',
    `${quote(path)} leads to ${quote(real)}, outside the workspace: stay in ${quote(workspace)}`,
  )
}

/** A write that made the folder anew would hide that all else is gone. */
async function workspaceOf(cwd: string): Promise<string> {
  try {
    return await realpath(cwd)
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw fsErrorOf(error, cwd)
    const message = `the workspace ${quote(cwd)} does not exist: tell the user, who must restore it`
    throw new FsError('WORKSPACE_MISSING', message, { cause: error })
  }
}

const maxPathLength = 4096

function checkPath(path: string): void {
  if (path.length > maxPathLength) {
    throw new FsError('INVALID_PATH', `${quote(path)} is too long for a path: use a shorter one`)
  }
  if (path === '' || path.includes('\0') || !path.isWellFormed()) {
    throw new FsError('INVALID_PATH', `${quote(path)} is no path: name a file or folder`)
  }
}

/** How a real path is named to an agent whose workspace is given. */
export function shownPath(workspace: string, real: string): string {
  if (!isInside(workspace, real)) return real
  return relative(workspace, real).replaceAll(sep, '/') || '.'
}

/** Like `realpath`, but a tail that does not exist is kept, also behind a dangling link. */
async function realPathOf(path: string, hops = 0): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT' || dirname(path) === path) throw error
  }
  const folder = await realPathOf(dirname(path), hops)
  const here = join(folder, basename(path))
  const target = await linkTargetOf(here)
  if (target === undefined) return here
  if (hops > 40) throw new FsError('INVALID_PATH', `${quote(path)} follows too many links`)
  return realPathOf(resolve(folder, target), hops + 1)
}

async function linkTargetOf(path: string): Promise<string | undefined> {
  try {
    return await readlink(path)
  } catch (error) {
    const code = systemCodeOf(error)
    if (code === 'ENOENT' || code === 'EINVAL') return undefined
    throw error
  }
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
