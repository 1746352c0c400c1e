/** Turns data into what a log may hold: JSON, copied, deep-frozen, free of lone surrogates. */
import { SessionError } from './errors.ts'

const maxDepth = 100

/**
 * Copies JSON data and freezes the copy. Properties that are `undefined` are left out.
 * @throws SessionError `NOT_JSON` naming the path of the first value that JSON cannot carry.
 */
export function freezeJson<T>(value: T, path = 'data'): T {
  return copy(value, path, 0) as T
}

function copy(value: unknown, path: string, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? value : value.toWellFormed()
    case 'boolean':
      return value
    case 'number':
      if (!Number.isFinite(value)) throw notJson(path, String(value))
      return value
    case 'object':
      if (value === null) return null
      if (depth === maxDepth) throw notJson(path, `nested deeper than ${maxDepth}`)
      return Array.isArray(value)
        ? copyArray(value, path, depth + 1)
        : copyObject(value, path, depth + 1)
    default:
      throw notJson(path, typeof value)
  }
}

function copyArray(value: readonly unknown[], path: string, depth: number): unknown {
  // A spread has room for exactly these items; an array that grows takes room for 17, and keeps it.
  const result: unknown[] = [...value]
  for (let index = 0; index < result.length; index += 1) {
    result[index] = copy(result[index], `${path}[${index}]`, depth)
  }
  return Object.freeze(result)
}

function copyObject(value: object, path: string, depth: number): unknown {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    throw notJson(path, value.constructor?.name ?? 'an object with a prototype')
  }
  const result: Record<string, unknown> = {}
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue
    const key = name.isWellFormed() ? name : name.toWellFormed()
    const copied = copy(item, `${path}.${key}`, depth)
    if (key === '__proto__') Object.defineProperty(result, key, { value: copied, enumerable: true })
    else result[key] = copied
  }
  return Object.freeze(result)
}

function notJson(path: string, found: string): SessionError {
  return new SessionError('NOT_JSON', `session data must be JSON: "${path}" is ${found}`)
}
