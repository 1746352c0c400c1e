/** The tools of an agent that is resumed. */
import type { ToolFilter } from '@deepseek-ai/dsh-session'
import type { ToolScope } from '@deepseek-ai/dsh-tools'

/** Lets a tool pass that passes every filter, also one that is registered later; absent: no filter. */
export function scopeOf(filters: readonly ToolFilter[] = []): ToolScope | undefined {
  if (filters.length === 0) return undefined
  const rules = filters.map(({ allow, deny }) => ({
    allow: allow && new Set(allow),
    deny: new Set(deny),
  }))
  return {
    allows: (name) =>
      rules.every(({ allow, deny }) => allow?.has(name) !== false && !deny.has(name)),
  }
}
