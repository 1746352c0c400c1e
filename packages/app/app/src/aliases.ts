/** The aliases of a yml, written out: what two entries share would be changed for both. */

/** Aliases of aliases grow without end. */
const maxValues = 100_000

/** Why aliases cannot be written out. */
export class AliasError extends Error {
  override readonly name = 'AliasError'
}

/** A copy in which nothing is shared. @throws AliasError when it would have no end, or be too large. */
export function withoutAliases<T>(value: T): T {
  let count = 0
  const copyOf = (original: unknown, path: string, above: readonly object[]): unknown => {
    count += 1
    if (count > maxValues) {
      throw new AliasError(`its aliases stand for more than ${maxValues} values: use fewer of them`)
    }
    if (typeof original !== 'object' || original === null) return original
    if (above.includes(original)) {
      throw new AliasError(`"${path}" contains itself through an alias: write out what is meant`)
    }
    const inside = [...above, original]
    const at = (key: string): string => (path === '' ? key : `${path}.${key}`)
    const items = Object.entries(original).map(
      ([key, item]) => [key, copyOf(item, at(key), inside)] as const,
    )
    return Array.isArray(original) ? items.map(([, item]) => item) : Object.fromEntries(items)
  }
  return copyOf(value, '', []) as T
}
