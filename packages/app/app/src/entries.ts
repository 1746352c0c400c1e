/** The entries that a yml lists: read and checked, each with an id and a place. */
import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { entryListSchema } from '@deepseek-ai/cordis-plugin-include'
import type { EntryOptions } from '@deepseek-ai/cordis-plugin-loader'
import { load, YAMLException } from 'js-yaml'
import { AliasError, withoutAliases } from './aliases.ts'
import { errorText, pathOf } from './error-text.ts'
import { AppError } from './errors.ts'
import { nearest } from './keys.ts'

const entryKeys = ['id', 'name', 'config', 'disabled', 'group', 'inject', 'isolate', 'intercept']

/** Where entries stand, by their ids: `file:line`. */
export type Places = ReadonlyMap<string, string>

/** Where an item of a list stands: `file:line`, or the file alone. */
type PlaceOf = (list: readonly unknown[], index: number) => string

/**
 * Reads and checks a list of entries. @returns where they stand.
 * @throws AppError `INVALID_CONFIG` with file, line and column, or with one line per wrong entry.
 */
export async function readEntries(path: string): Promise<Places> {
  const file = pathOf(path)
  if (!/\.(ya?ml|json)$/.test(path) && existsSync(path) && statSync(path).isFile()) {
    throw invalid(`"${file}" is not a yml: the name must end in .yml, .yaml or .json`)
  }
  const { data, placeOf } = parse(await readText(path), file)
  if (data === undefined || data === null) {
    throw invalid(`"${file}" is empty: write a list of entries, such as "- name: ./plugin.ts"`)
  }
  if (!Array.isArray(data)) {
    throw invalid(`"${file}" must be a list of entries, each such as "- name: ./plugin.ts"`)
  }
  refuse(data.flatMap((entry, index) => problemsOfAliases(entry, index, placeOf(data, index))))
  refuse(problemsOfList(data, placeOf))
  return new Map(placesIn(withIds(data as EntryOptions[]), data, placeOf))
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const file = pathOf(path)
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw invalid(`"${file}" does not exist: give the path of a yml`)
    if (code === 'EISDIR') throw invalid(`"${file}" is a folder: give the path of a yml in it`)
    throw invalid(`"${file}" cannot be read: ${errorText(error)}`)
  }
}

function parse(text: string, file: string): { data: unknown; placeOf: PlaceOf } {
  const lines = new Map<unknown, number[]>()
  const stack: { readonly line: number; readonly below: number[] }[] = [{ line: 0, below: [] }]
  try {
    const data = load(text, {
      schema: entryListSchema,
      listener: (event, { line, result }) => {
        if (event === 'open') stack.push({ line: line + 1, below: [] })
        else {
          const node = stack.pop()
          if (node === undefined) return
          stack.at(-1)?.below.push(node.line)
          if (Array.isArray(result) && !lines.has(result)) lines.set(result, node.below)
        }
      },
    })
    const placeOf: PlaceOf = (list, index) => {
      const below = lines.get(list)
      return below?.length === list.length ? `${file}:${below[index]}` : `"${file}"`
    }
    return { data, placeOf }
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const { mark, reason } = error
    throw invalid(
      `${file}:${mark.line + 1}:${mark.column + 1}: ${reason}: correct it there; an entry is written "- name: ./plugin.ts"`,
    )
  }
}

function problemsOfAliases(entry: unknown, index: number, place: string): string[] {
  try {
    withoutAliases(entry)
    return []
  } catch (error) {
    if (!(error instanceof AliasError)) throw error
    const { name } = Object(entry) as { name?: unknown }
    const which = typeof name === 'string' ? `entry "${name}"` : `entry ${index + 1}`
    return [`${place}: ${which}: ${error.message}`]
  }
}

function problemsOfList(
  entries: readonly unknown[],
  placeOf: PlaceOf,
  ids = new Set<string>(),
): string[] {
  return entries.flatMap((entry, index) => {
    const problems = problemsOfEntry(entry, index + 1, ids)
    const place = placeOf(entries, index)
    const below = isGroup(entry) ? problemsOfList(entry.config, placeOf, ids) : []
    return [...problems.map((text) => `${place}: ${text}`), ...below]
  })
}

function problemsOfEntry(entry: unknown, position: number, ids: Set<string>): string[] {
  if (typeof entry !== 'object' || entry === null) {
    return [`entry ${position} must have a "name", such as "- name: ./plugin.ts"`]
  }
  const { id, name } = entry as Partial<EntryOptions>
  if (typeof name !== 'string' || name === '') {
    return [`entry ${position} has no "name": name a package or a file`]
  }
  const problems = Object.keys(entry)
    .filter((key) => !entryKeys.includes(key))
    .map((key) => `entry "${name}": ${unknownKey('key', key, entryKeys)}`)
  if (id !== undefined && typeof id !== 'string') {
    problems.push(`entry "${name}": the id must be a text, not ${JSON.stringify(id)}`)
  } else if (id !== undefined && ids.has(id)) {
    problems.push(`entry "${name}": another entry has the id "${id}": rename one of the two`)
  } else if (id !== undefined) {
    ids.add(id)
  }
  return problems
}

/** Says that a key is not known, and which one may have been meant. */
export function unknownKey(kind: string, key: string, known: readonly string[]): string {
  const similar = nearest(key.slice(key.lastIndexOf('.') + 1), known)
  const remedy =
    similar === undefined
      ? `known: ${known.join(', ') || 'none'}`
      : `did you mean "${similar}"? Known: ${known.join(', ')}`
  return `unknown ${kind} "${key}" (${remedy})`
}

/** A copy in which entries without an id have one from their name, so that an edit elsewhere leaves them running. */
export function withIds(entries: readonly EntryOptions[]): EntryOptions[] {
  const copies = entries.map((entry) => withoutAliases(entry))
  addIds(copies, new Set())
  return copies
}

function addIds(entries: EntryOptions[], ids: Set<string>): void {
  for (const { id } of entries) if (id !== undefined) ids.add(id)
  for (const entry of entries) {
    // The loader reads a colon as the step into a nested file.
    const base = entry.name.replaceAll(':', '.')
    let id = base
    for (let count = 2; entry.id === undefined && ids.has(id); count += 1) id = `${base}#${count}`
    entry.id ??= id
    ids.add(entry.id)
    if (isGroup(entry)) addIds(entry.config, ids)
  }
}

/** `list` is what the entries were copied from. */
function placesIn(
  entries: readonly EntryOptions[],
  list: readonly unknown[],
  placeOf: PlaceOf,
): (readonly [string, string])[] {
  return entries.flatMap((entry, index) => {
    const place = [entry.id, placeOf(list, index)] as const
    const original = list[index] as EntryOptions
    return isGroup(entry) ? [place, ...placesIn(entry.config, original.config, placeOf)] : [place]
  })
}

function isGroup(entry: unknown): entry is EntryOptions & { readonly config: EntryOptions[] } {
  const { group, config } = Object(entry) as Partial<EntryOptions>
  return group === true && Array.isArray(config)
}

function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw invalid(problems.join('\n'))
}

function invalid(message: string): AppError {
  return new AppError('INVALID_CONFIG', message)
}
