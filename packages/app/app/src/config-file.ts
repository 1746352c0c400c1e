/** The yml that is booted, and those it includes: checked before they are applied, never written. */
import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { Service } from '@deepseek-ai/cordis'
import { entryListSchema, Include } from '@deepseek-ai/cordis-plugin-include'
import type { EntryOptions } from '@deepseek-ai/cordis-plugin-loader'
import { load, YAMLException } from 'js-yaml'
import { errorText, pathOf } from './error-text.ts'
import { AppError } from './errors.ts'
import { nearest } from './keys.ts'
import { ownName } from './log.ts'

/** Longer than the time in which a watcher drops further changes of one file, in ms. */
const settleMs = 100
const entryKeys = ['id', 'name', 'config', 'disabled', 'group', 'inject', 'isolate', 'intercept']

/** An include whose file is checked in full first and whose entries keep their ids over an edit. */
export class ConfigFile extends Include {
  /** What the import of a module failed with, by the entry's `name`. */
  readonly importErrors = new Map<string, unknown>()
  private nextRefresh: Promise<void> | undefined
  private lastRefresh = Promise.resolve()

  override async *[Service.init](): AsyncGenerator<() => Promise<void>, void, void> {
    const { root } = this
    const update = root.update.bind(root)
    root.update = (entries) => update(withIds(entries))
    await readEntries(this.filename)
    yield* super[Service.init]()
  }

  /** Applies the file anew; one that is invalid leaves everything as it is. */
  override refresh(): Promise<void> {
    this.nextRefresh ??= this.refreshSoon()
    return this.nextRefresh
  }

  /** Refused: a file that people write keeps their comments and expressions. */
  override write(): void {}

  override async import(name: string, getOuterStack?: () => string[]): Promise<unknown> {
    try {
      const exports: unknown = await super.import(name, getOuterStack)
      const plugin: unknown = this.ctx.loader.unwrapExports(exports)
      if (plugin === Include) return ConfigFile
      if (this.ctx.registry.resolve(plugin as never) === undefined) throw notPlugin(name)
      this.importErrors.delete(name)
      return exports
    } catch (error) {
      this.importErrors.set(name, error)
      throw error
    }
  }

  /** One write can be several changes of the file, of which the watcher may tell the first alone. */
  private async refreshSoon(): Promise<void> {
    await delay(settleMs)
    this.nextRefresh = undefined
    this.lastRefresh = this.lastRefresh.then(() => this.refreshNow())
    await this.lastRefresh
  }

  private async refreshNow(): Promise<void> {
    const { ctx, filename } = this
    if (ctx.fiber.uid === null) return
    try {
      await readEntries(filename)
    } catch (error) {
      ctx.logger(ownName).warn(`${errorText(error)}\nthe configuration is kept as it was`)
      return
    }
    await super.refresh()
    ctx.root.emit('app/changed')
  }
}

/**
 * Reads and checks a list of entries.
 * @throws AppError `INVALID_CONFIG` with file, line and column, or with one line per wrong entry.
 */
export async function readEntries(path: string): Promise<EntryOptions[]> {
  const file = pathOf(path)
  if (!/\.(ya?ml|json)$/.test(path) && existsSync(path) && statSync(path).isFile()) {
    throw invalid(`"${file}" is not a yml: the name must end in .yml, .yaml or .json`)
  }
  const data = parse(await readText(path), file)
  if (data === undefined || data === null) {
    throw invalid(`"${file}" is empty: write a list of entries, such as "- name: ./plugin.ts"`)
  }
  if (!Array.isArray(data)) {
    throw invalid(`"${file}" must be a list of entries, each such as "- name: ./plugin.ts"`)
  }
  const problems = problemsOfList(data)
  if (problems.length > 0) throw invalid(problems.map((text) => `"${file}": ${text}`).join('\n'))
  return data as EntryOptions[]
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

function parse(text: string, file: string): unknown {
  try {
    return load(text, { schema: entryListSchema })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const { mark, reason } = error
    throw invalid(`${file}:${mark.line + 1}:${mark.column + 1}: ${reason}`)
  }
}

function problemsOfList(entries: readonly unknown[], ids = new Set<string>()): string[] {
  return entries.flatMap((entry, index) => problemsOfEntry(entry, index + 1, ids))
}

function problemsOfEntry(entry: unknown, position: number, ids: Set<string>): string[] {
  if (typeof entry !== 'object' || entry === null) {
    return [`entry ${position} must have a "name", such as "- name: ./plugin.ts"`]
  }
  const { id, name, group, config } = entry as Partial<EntryOptions>
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
  const isGroup = group === true && Array.isArray(config)
  return isGroup ? [...problems, ...problemsOfList(config, ids)] : problems
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

/** Entries without an id get one from their name, so that an edit elsewhere leaves them running. */
function withIds(entries: EntryOptions[], ids = new Set<string>()): EntryOptions[] {
  for (const { id } of entries) if (id !== undefined) ids.add(id)
  for (const entry of entries) {
    // The loader reads a colon as the step into a nested file.
    const base = entry.name.replaceAll(':', '.')
    let id = base
    for (let count = 2; entry.id === undefined && ids.has(id); count += 1) id = `${base}#${count}`
    entry.id ??= id
    ids.add(entry.id)
    if (entry.group === true && Array.isArray(entry.config)) withIds(entry.config, ids)
  }
  return entries
}

function notPlugin(name: string): AppError {
  return new AppError(
    'NOT_A_PLUGIN',
    name.startsWith('cordis:')
      ? `there is no "${name}": the built-in ones are cordis:include and cordis:group`
      : 'it exports no plugin: export a function "apply", or a class as default',
  )
}

function invalid(message: string): AppError {
  return new AppError('INVALID_CONFIG', message)
}
