/** Checks entries of a yml against the plugins that they name. */
import { entryListSchema } from '@deepseek-ai/cordis-plugin-include'
import { load } from 'js-yaml'
import type { Schema } from '../catalog/config-keys.ts'

/** The schema of a plugin by its package's name; `undefined` when there is no such plugin. */
export type FindPlugin = (
  name: string,
) => Promise<{ readonly schema: Schema | undefined } | undefined>

interface Entry {
  readonly name?: unknown
  readonly group?: unknown
  readonly config?: unknown
}

/** What is wrong with a yml; local plugins, whose name begins with a dot, are taken on trust. */
export async function problemsOfYml(text: string, find: FindPlugin): Promise<string[]> {
  const data = load(text, { schema: entryListSchema })
  if (!Array.isArray(data)) return ['is no list of entries']
  return problemsOfEntries(data as Entry[], find)
}

async function problemsOfEntries(entries: readonly Entry[], find: FindPlugin): Promise<string[]> {
  const problems = await Promise.all(entries.map((entry) => problemsOfEntry(entry, find)))
  return problems.flat()
}

async function problemsOfEntry(
  { name, group, config }: Entry,
  find: FindPlugin,
): Promise<string[]> {
  if (typeof name !== 'string') return ['has an entry without a name']
  if (group === true && Array.isArray(config)) return problemsOfEntries(config as Entry[], find)
  if (/^(\.|cordis:)/.test(name)) return []
  const plugin = await find(name)
  if (plugin === undefined) return [`"${name}" is no plugin`]
  if (config === undefined) config = {}
  const { schema } = plugin
  if (schema === undefined) {
    return Object.keys(config as object).map((key) => `"${name}" takes no config, so no "${key}"`)
  }
  const unknown = unknownKeys(schema, config).map((key) => `"${name}" has no config key "${key}"`)
  return [...unknown, ...refusalOf(name, schema, withoutExpressions(config))]
}

function refusalOf(name: string, schema: Schema, config: unknown): string[] {
  try {
    schema(config)
    return []
  } catch (error) {
    return [`"${name}": ${(error as Error).message}`]
  }
}

function unknownKeys(schema: Schema | undefined, value: unknown, path = ''): string[] {
  if (schema === undefined || !isObject(value) || isExpression(value)) return []
  if (schema.type === 'array')
    return Object.values(value).flatMap((item) => unknownKeys(schema.inner, item, `${path}[].`))
  if (schema.type !== 'object') return []
  const { dict = {} } = schema
  return Object.entries(value).flatMap(([key, item]) =>
    Object.hasOwn(dict, key) ? unknownKeys(dict[key], item, `${path}${key}.`) : [`${path}${key}`],
  )
}

/** An expression may give anything, so what it stands for counts as left out. */
function withoutExpressions(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.filter((item) => !isExpression(item)).map(withoutExpressions)
  }
  if (!isObject(value)) return value
  const kept = Object.entries(value).filter(([, item]) => !isExpression(item))
  return Object.fromEntries(kept.map(([key, item]) => [key, withoutExpressions(item)]))
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const isExpression = (value: unknown): boolean => isObject(value) && '__jsExpr' in value
