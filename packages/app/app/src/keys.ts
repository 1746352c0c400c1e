/** Config keys that a plugin's schema does not know: Schemastery passes them through in silence. */

/** The part of a Schemastery schema that tells its keys. */
export interface SchemaNode {
  readonly type?: string
  readonly dict?: Readonly<Record<string, SchemaNode>>
  readonly inner?: SchemaNode
  readonly list?: readonly SchemaNode[]
}

export interface UnknownKey {
  /** From the config's root, for example `models.0.nam`. */
  readonly path: string
  /** The keys that would be right there. */
  readonly known: readonly string[]
}

/** Finds the keys, at any depth, that no object schema on their way declares. */
export function unknownKeys(
  schema: SchemaNode | undefined,
  value: unknown,
  path = '',
): UnknownKey[] {
  if (schema === undefined || typeof value !== 'object' || value === null) return []
  if ('__jsExpr' in value) return []
  const at = (key: string | number): string => (path === '' ? `${key}` : `${path}.${key}`)
  switch (schema.type) {
    case 'object':
    case 'intersect': {
      const dict = keysOf(schema)
      if (dict === undefined) return []
      return Object.entries(value).flatMap(([key, item]) =>
        Object.hasOwn(dict, key)
          ? unknownKeys(dict[key], item, at(key))
          : [{ path: at(key), known: Object.keys(dict) }],
      )
    }
    case 'array':
    case 'dict':
      return Object.entries(value).flatMap(([key, item]) =>
        unknownKeys(schema.inner, item, at(key)),
      )
    case 'tuple':
      return Object.entries(value).flatMap(([key, item]) =>
        unknownKeys(schema.list?.[Number(key)], item, at(key)),
      )
    case 'union':
      return fewest(schema.list?.map((member) => unknownKeys(member, value, path)))
    case 'transform':
    case 'lazy':
      return unknownKeys(schema.inner, value, path)
    default:
      return []
  }
}

/** The candidate that a typing mistake would most likely have meant. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const limit = Math.max(1, Math.floor(word.length / 3))
  const [best] = candidates
    .map((candidate) => ({ candidate, distance: distanceOf(word, candidate) }))
    .filter(({ distance }) => distance <= limit)
    .toSorted((a, b) => a.distance - b.distance)
  return best?.candidate
}

/** The keys of an object schema or of all members of an intersection; absent when one is open. */
function keysOf(schema: SchemaNode): Readonly<Record<string, SchemaNode>> | undefined {
  if (schema.type === 'object') return schema.dict
  if (schema.type !== 'intersect') return undefined
  const parts = schema.list?.map(keysOf) ?? []
  return parts.every((part) => part !== undefined) ? Object.assign({}, ...parts) : undefined
}

function fewest(findings: readonly UnknownKey[][] = []): UnknownKey[] {
  return findings.toSorted((a, b) => a.length - b.length)[0] ?? []
}

/** Levenshtein distance, blind to case. */
function distanceOf(a: string, b: string): number {
  const target = b.toLowerCase()
  let row = Array.from({ length: target.length + 1 }, (_, index) => index)
  for (const [i, letter] of Array.from(a.toLowerCase()).entries()) {
    const next = [i + 1]
    for (let j = 1; j <= target.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (letter === target[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
