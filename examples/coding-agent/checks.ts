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

/** Checks the lineage, the work and the separation of one parent's delegations to three children. */
export function checksOfLogs(logs: readonly Log[]): Check[] {
  const parents = logs.filter(({ header }) => header.delegationDepth === 0)
  const [parent] = parents
  if (parent === undefined) return [{ claim: 'the parent has a session', holds: false }]
  const calls = dataOf(parent, 'tool/call')
  // In the order in which the parent called them, whatever the order on disk.
  const children = calls.flatMap(({ callId }) =>
    logs.filter(({ header }) => header.origin?.callId === callId),
  )
  return [
    {
      claim: 'there is one parent, and three children that name it and the call that made them',
      holds: parents.length === 1 && logs.length === 4 && areChildren(children, parent),
    },
    {
      claim: 'every session ended as completed',
      holds: logs.every((log) => dataOf(log, 'turn/end').every(isCompleted) && isClosed(log)),
    },
    {
      claim: 'the first child ran the tests, read, edited, and ran them again',
      holds: toolsOf(children[0]) === 'bash read edit bash',
    },
    { claim: 'the children worked at the same time', holds: overlap(children) },
    {
      claim: 'of its children the parent logged the three calls and their results, in call order',
      holds:
        calls.length === 3 &&
        calls.every(({ name }) => name === 'subagent') &&
        haveResultsInOrder(parent),
    },
  ]
}

function areChildren(children: readonly Log[], { header: { id } }: Log): boolean {
  return (
    children.length === 3 &&
    children.every(
      ({ header }) =>
        header.parentSession === id &&
        header.delegationDepth === 1 &&
        header.origin?.provider === 'spawn',
    )
  )
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

function overlap(logs: readonly Log[]): boolean {
  const starts = logs.map(({ events }) => events[0]?.time ?? Infinity)
  const ends = logs.map(({ events }) => events.at(-1)?.time ?? 0)
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
