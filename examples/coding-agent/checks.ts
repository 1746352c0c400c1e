/** What must be true after the demo, told by the logs of its sessions. */
import type {
  SessionEvent,
  SessionEventData,
  SessionEventType,
  SessionHeader,
} from '@deepseek-ai/dsh-session'

/** A claim on the world, and whether it holds. */
export interface Check {
  readonly claim: string
  readonly holds: boolean
}

/** A session as it lies on disk. */
export interface Log {
  readonly header: SessionHeader
  readonly events: readonly SessionEvent[]
}

/** What the parent called, and who provided each child, in the order of the calls. */
const expectedTools = ['subagent', 'subagent_acp', 'subagent', 'subagent_fork']
const expectedProviders = ['spawn', 'acp', 'spawn', 'fork']

/** Checks the lineage, the work and the separation of one parent's delegations in two turns. */
export function checksOfLogs(logs: readonly Log[]): Check[] {
  const parents = logs.filter(({ header }) => header.delegationDepth === 0)
  const [parent] = parents
  if (parent === undefined) return [{ claim: 'the parent has a session', holds: false }]
  const calls = dataOf(parent, 'tool/call')
  // In the order in which the parent called them, whatever the order on disk.
  const children = calls.flatMap(({ callId }) =>
    logs.filter(({ header }) => header.origin?.callId === callId),
  )
  const [fix, write, count, fork] = children
  return [
    {
      claim: 'there is one parent, and each child names it and the call that made it',
      holds: parents.length === 1 && logs.length === 5 && areChildren(children, parent),
    },
    {
      claim: 'the child in a process of its own read, and wrote',
      holds: toolsOf(write) === 'read write',
    },
    {
      claim: 'the fork began with the first turn of its parent, the others with nothing',
      holds: fork?.header.seedLength === firstTurnOf(parent) && [fix, write, count].every(isFresh),
    },
    {
      claim: 'every session ended as completed',
      holds: logs.every((log) => dataOf(log, 'turn/end').every(isCompleted) && isClosed(log)),
    },
    {
      claim: 'the first child ran the tests, read, edited, and ran them again',
      holds: toolsOf(fix) === 'bash read edit bash',
    },
    {
      claim: 'the other children of the first turn worked while the first one did',
      holds: [write, count].every((log) => overlap([fix, log])),
    },
    {
      claim: 'of its children the parent logged the calls and their results, in call order',
      holds:
        calls.map(({ name }) => name).join() === expectedTools.join() && haveResultsInOrder(parent),
    },
  ]
}

function areChildren(children: readonly Log[], { header: { id } }: Log): boolean {
  return (
    children.map(({ header }) => header.origin?.provider).join() === expectedProviders.join() &&
    children.every(({ header }) => header.parentSession === id && header.delegationDepth === 1)
  )
}

function isFresh(log: Log | undefined): boolean {
  return log !== undefined && log.header.seedLength === undefined
}

/** How many events the first turn of a log has. */
function firstTurnOf({ events }: Log): number {
  return events.findIndex(({ type }) => type === 'turn/end') + 1
}

function isCompleted({ reason }: { readonly reason: string }): boolean {
  return reason === 'completed'
}

function isClosed({ events }: Log): boolean {
  return events.at(-1)?.type === 'turn/end'
}

function haveResultsInOrder(log: Log): boolean {
  const results = dataOf(log, 'tool/result')
  const calls = dataOf(log, 'tool/call')
  return (
    results.every(({ isError }) => !isError) &&
    results.map(({ callId }) => callId).join() === calls.map(({ callId }) => callId).join()
  )
}

function overlap(logs: readonly (Log | undefined)[]): boolean {
  const starts = logs.map((log) => log?.events[0]?.time ?? Infinity)
  const ends = logs.map((log) => log?.events.at(-1)?.time ?? 0)
  return Math.max(...starts) < Math.min(...ends)
}

function toolsOf(log: Log | undefined): string {
  if (log === undefined) return ''
  return dataOf(log, 'tool/call')
    .map(({ name }) => name)
    .join(' ')
}

function dataOf<T extends SessionEventType>({ events }: Log, type: T): SessionEventData[T][] {
  return events.flatMap((event) => (event.type === type ? [event.data as SessionEventData[T]] : []))
}
