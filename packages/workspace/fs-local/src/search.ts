/** Finds files and lines with ripgrep, whose engines take linear time on any pattern. */
import { basename, dirname, join } from 'node:path'
import { type Place, shownPath } from './paths.ts'
import { ripgrep, type SearchCut } from './ripgrep.ts'

/** How far a search may go. */
export interface SearchLimits {
  readonly maxResults: number
  /** Of all results together, 8 for each one's line number and end included. */
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

/** What a search found, sorted by path; `cut` tells why there may be more. */
export interface Found<Item> {
  readonly items: readonly Item[]
  readonly cut?: SearchCut
}

/** A line that matches. */
export interface LineMatch {
  /** Relative to the workspace, or absolute outside of it. */
  readonly path: string
  /** Counts from 1. */
  readonly line: number
  /** Without line end; a long line is cut. */
  readonly text: string
}

/** Which lines are wanted. */
export interface LineQuery {
  /** A regular expression in the syntax of Rust's regex crate. */
  readonly pattern: string
  readonly ignoreCase?: boolean
  /** Only files that match this. */
  readonly glob?: string
}

/** Files of a folder that are not ignored and match the glob. @throws FsError `INVALID_PATTERN`, `SEARCH_FAILED`. */
export async function findFiles(
  place: Place,
  glob: string,
  limits: SearchLimits,
): Promise<Found<string>> {
  const selection = await selectFiles(place, glob, limits)
  const found = createCollection<string>(limits)
  const cut = await ripgrep({
    ...limits,
    workspace: place.workspace,
    folder: place.real,
    args: ['--files', '--null', ...selection.args],
    target: './',
    terminator: '\0',
    take(record) {
      const path = withoutDot(record)
      if (!selection.has(path)) return true
      const shown = shownPath(place.workspace, join(place.real, path))
      return found.add(shown, Buffer.byteLength(shown))
    },
  })
  return { items: found.items, cut: selection.cut ?? cut }
}

/** Lines of a file, or of a folder's files that are not ignored. @throws FsError `INVALID_PATTERN`, `SEARCH_FAILED`. */
export async function findLines(
  place: Place,
  isFolder: boolean,
  query: LineQuery,
  limits: SearchLimits,
): Promise<Found<LineMatch>> {
  const folder = isFolder ? place.real : dirname(place.real)
  const selection = isFolder ? await selectFiles(place, query.glob, limits) : allFiles
  const found = createCollection<LineMatch>(limits)
  const cut = await ripgrep({
    ...limits,
    workspace: place.workspace,
    folder,
    args: [
      ...lineArgs,
      ...(query.ignoreCase === true ? ['--ignore-case'] : []),
      ...selection.args,
      `--regexp=${query.pattern}`,
    ],
    target: isFolder ? './' : `./${basename(place.real)}`,
    terminator: '\n',
    take(record) {
      const match = parseLine(record)
      if (match === undefined || !selection.has(match.path)) return true
      const path = shownPath(place.workspace, join(folder, match.path))
      return found.add({ ...match, path }, Buffer.byteLength(path) + Buffer.byteLength(match.text))
    },
  })
  return { items: found.items, cut: selection.cut ?? cut }
}

const lineArgs = [
  '--null',
  '--line-number',
  '--with-filename',
  '--no-heading',
  '--crlf',
  '--max-columns=500',
  '--max-columns-preview',
  '--regex-size-limit=10M',
]

/** Remarks on binary files have no NUL; the rest of a name that holds a line end has no `./`. */
function parseLine(record: string): LineMatch | undefined {
  const parts = /^\.\/([^\0]*)\0(\d+):(.*)$/s.exec(record)
  if (parts === null) return undefined
  const [, path = '', line, text = ''] = parts
  return { path, line: Number(line), text: text.replace(/\r$/, '') }
}

interface Selection {
  readonly args: readonly string[]
  /** @param path relative to the folder that is searched. */
  has(path: string): boolean
  readonly cut?: SearchCut
}

const allFiles: Selection = { args: [], has: () => true }
const maxListed = 500_000

/**
 * To ripgrep, a file that a glob names is not ignored any more: that would bring in what a wide glob
 * never meant. So the files that are not ignored are listed first, and only they are kept.
 */
async function selectFiles(
  place: Place,
  glob: string | undefined,
  limits: SearchLimits,
): Promise<Selection> {
  if (glob === undefined || /^(?:\*\*\/)*\*{1,2}$/.test(glob)) return allFiles
  const listed = new Set<string>()
  const cut = await ripgrep({
    ...limits,
    workspace: place.workspace,
    folder: place.real,
    args: ['--files', '--null'],
    target: './',
    terminator: '\0',
    take: (record) => listed.add(withoutDot(record)).size < maxListed,
  })
  return { args: [`--glob=${relativeGlob(place, glob)}`], has: (path) => listed.has(path), cut }
}

function withoutDot(path: string): string {
  return path.replace(/^\.\//, '')
}

/** Models write globs that start at the file system's root or at `./`; ripgrep knows neither. */
function relativeGlob({ real }: Place, glob: string): string {
  return glob.startsWith(`${real}/`) ? glob.slice(real.length) : glob.replace(/^\.\//, '/')
}

function createCollection<Item>({ maxResults, maxBytes }: SearchLimits): {
  readonly items: Item[]
  add(item: Item, bytes: number): boolean
} {
  const items: Item[] = []
  let total = 0
  return {
    items,
    add(item, bytes) {
      total += bytes + 8
      if (items.length >= maxResults || total > maxBytes) return false
      items.push(item)
      return true
    },
  }
}
