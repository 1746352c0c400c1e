/** Looking into JSON of unknown shape. */
import type { JsonObject, JsonValue } from '@deepseek-ai/dsh-llm'

/** The value as an object; an empty one when it is none. */
export function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : {}
}

/** The value's items as objects; none when it is no array. */
export function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.map(objectOf) : []
}

/** A text, or the joined texts of a list of parts, however deep. */
export function textOf(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  return objectsOf(value)
    .map(({ text, content, output }) => textOf(text ?? content ?? output))
    .join('')
}

/** One server-sent event; `name` for the protocols that name theirs. */
export function event(data: JsonObject, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`
}
