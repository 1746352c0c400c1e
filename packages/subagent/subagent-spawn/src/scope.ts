/** The tools of a child: never more than its parent's, less by the filter. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import { SubagentError, type SubagentToolFilter } from '@deepseek-ai/dsh-subagent'
import type { Tool, ToolScope, ToolTable } from '@deepseek-ai/dsh-tools'

export interface ScopeOptions {
  readonly parent: Agent
  readonly filter: SubagentToolFilter | undefined
  readonly tools: ToolTable
  /** A tool that the harness itself needs: no filter hides it. */
  readonly own: Tool | undefined
  readonly warn: (message: string) => void
}

/**
 * @returns absent when the child may use every registered tool.
 * @throws SubagentError `INVALID_REQUEST` when `allow` names a tool that is not registered.
 */
export function childScope({
  parent,
  filter,
  tools,
  own,
  warn,
}: ScopeOptions): ToolScope | undefined {
  const inherited = parent.toolScope
  if (filter === undefined && own === undefined && inherited?.own === undefined) return inherited
  checkNames(filter, tools, warn)
  const allow = filter?.allow && new Set(filter.allow)
  const deny = new Set(filter?.deny)
  return {
    allows: (name) =>
      inherited?.allows(name) !== false && allow?.has(name) !== false && !deny.has(name),
    ...(own !== undefined && { own: [own] }),
  }
}

function checkNames(
  filter: SubagentToolFilter | undefined,
  tools: ToolTable,
  warn: (message: string) => void,
): void {
  const known = tools.names().join(', ') || 'none'
  for (const name of filter?.allow ?? []) {
    if (tools.has(name)) continue
    throw new SubagentError(
      'INVALID_REQUEST',
      `toolFilter.allow names the unknown tool "${name}" (registered: ${known})`,
    )
  }
  for (const name of filter?.deny ?? []) {
    if (tools.has(name)) continue
    warn(`toolFilter.deny names the unknown tool "${name}" (registered: ${known})`)
  }
}
