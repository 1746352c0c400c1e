/** Which package stands above which: imports point downwards only. */
import type { WorkspacePackage } from '../workspace.ts'

/** The published packages by their short names, floor by floor from the ground up. */
export const floors: readonly (readonly string[])[] = [
  ['llm'],
  ['session', 'process'],
  ['tools', 'system-prompt', 'invariants'],
  ['agent'],
  ['agent-loop'],
  ['agent-core'],
  ['llm-ai-sdk', 'llm-scripted', 'llm-replay', 'session-jsonl', 'subagent', 'bash', 'fs-local'],
  [
    'subagent-mock',
    'subagent-spawn',
    'subagent-acp',
    'tool-subagent',
    'bash-local',
    'tool-bash',
    'tool-fs',
  ],
  ['subagent-fork'],
  // The seam of front ends, and below them for that reason, whatever its folder is called.
  ['app'],
  ['acp', 'ui-terminal'],
  ['acp-workspace', 'dsh'],
]

/** Groups whose packages import nothing but the core and packages of their own group. */
const neighbours = new Set(['llm', 'session', 'subagent', 'workspace'])

/** The floor of a package; absent when it is not published or has no place yet. */
export function floorOf({ shortName, manifest }: WorkspacePackage): number | undefined {
  if (manifest.private === true) return undefined
  const floor = floors.findIndex((names) => names.includes(shortName))
  return floor === -1 ? undefined : floor
}

/** Why a published package may not import another one; absent when it may. */
export function objectionTo(from: WorkspacePackage, to: WorkspacePackage): string | undefined {
  const [own, other] = [floorOf(from), floorOf(to)]
  const pair = `${from.shortName} imports ${to.shortName}`
  if (own === undefined) return undefined
  if (other === undefined) return `${pair}, which is not published`
  if (to.group === 'support') return `${pair}, which is for tests`
  if (other >= own) return `${pair}, which stands on the same floor or above`
  if (neighbours.has(from.group) && to.group !== 'core' && to.group !== from.group) {
    return `${pair}, which is in a group beside it`
  }
  return undefined
}
