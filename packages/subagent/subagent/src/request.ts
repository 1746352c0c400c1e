/** What is checked of a start before anything is created. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import { SubagentDepthError, SubagentError } from './errors.ts'
import type { SubagentCapabilities, SubagentProvider, SubagentStartRequest } from './types.ts'

declare module '@deepseek-ai/dsh-agent' {
  interface AgentOptions {
    /** How deep the agent is in a tree of delegations: 0 at the top. */
    readonly subagentDepth?: number
  }
}

/** The longest delay that a timer takes, in ms. */
const maxDelayMs = 2 ** 31 - 1

/** The agent's absolute depth: the deeper of its options and its session's header. */
export function depthOf(agent: Agent): number {
  return Math.max(agent.options.subagentDepth ?? 0, agent.session.header.delegationDepth)
}

/**
 * Refuses what the provider cannot honour or nobody could.
 * @returns the child's depth.
 * @throws SubagentError `UNSUPPORTED_CAPABILITY` for the first unmet capability, `INVALID_REQUEST`,
 * `DEPTH_EXCEEDED`.
 */
export function checkRequest(provider: SubagentProvider, request: SubagentStartRequest): number {
  const { prompt, outputSchema, toolFilter, maxDepth, timeoutMs, idleTimeoutMs } = request
  requireCapability(provider, 'outputSchema', outputSchema)
  requireCapability(provider, 'depthLimit', maxDepth)
  requireCapability(provider, 'toolFilter', toolFilter)
  if (prompt.trim() === '') throw invalid('prompt', prompt, 'must not be empty')
  if (toolFilter !== undefined && !toolFilter.allow && !toolFilter.deny?.length) {
    throw invalid('toolFilter', '{}', 'must name tools under "allow" or "deny"')
  }
  checkDelay('timeoutMs', timeoutMs)
  checkDelay('idleTimeoutMs', idleTimeoutMs)
  const depth = depthOf(request.parent) + 1
  checkDepth(depth, maxDepth)
  return depth
}

function requireCapability(
  { name, capabilities }: SubagentProvider,
  capability: keyof SubagentCapabilities,
  value: unknown,
): void {
  if (value === undefined || capabilities[capability]) return
  throw new SubagentError(
    'UNSUPPORTED_CAPABILITY',
    `subagent provider "${name}" does not support "${capability}": leave it out or use another provider`,
  )
}

function checkDelay(key: string, value: number | undefined): void {
  if (value === undefined) return
  if (Number.isFinite(value) && value > 0 && value <= maxDelayMs) return
  throw invalid(key, String(value), `must be more than 0 and at most ${maxDelayMs} ms`)
}

function checkDepth(depth: number, maxDepth: number | undefined): void {
  if (maxDepth === undefined) return
  if (!Number.isSafeInteger(maxDepth) || maxDepth < 0) {
    throw invalid('maxDepth', String(maxDepth), 'must be a non-negative safe integer')
  }
  if (depth <= maxDepth) return
  throw new SubagentDepthError(
    `a child would be at depth ${depth}, deeper than maxDepth ${maxDepth} allows: do the work without delegating`,
  )
}

function invalid(key: string, value: string, rule: string): SubagentError {
  return new SubagentError('INVALID_REQUEST', `${key} ${rule}, not "${value}"`)
}
