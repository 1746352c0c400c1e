import type { SessionEvent, SessionHeader, SessionId } from '@deepseek-ai/dsh-session'
import { describe, expect, test } from 'vitest'
import { checksOfLogs, type Log } from '../checks.ts'

const kinds = ['spawn', 'acp', 'spawn', 'fork']
const tools = ['subagent', 'subagent_acp', 'subagent', 'subagent_fork']
const fix = 1
const foreign = 2
const count = 3
const fork = 4

describe('checksOfLogs', () => {
  test('every claim holds for three children that worked side by side, and a fork after them', () => {
    const logs = createLogs()

    expect(checksOfLogs(logs).filter(({ holds }) => !holds)).toEqual([])
    expect(checksOfLogs(logs.toReversed()).filter(({ holds }) => !holds)).toEqual([])
  })

  test('one claim fails when there is no session at all', () => {
    expect(checksOfLogs([])).toEqual([{ claim: 'the parent has a session', holds: false }])
  })

  const lineage = 'there is one parent, and each child names it and the call that made it'
  const process = 'the child in a process of its own read, and wrote'
  const inheritance = 'the fork began with the first turn of its parent, the others with nothing'
  const ends = 'every session ended as completed'
  const work = 'the first child ran the tests, read, edited, and ran them again'
  const overlap = 'the other children of the first turn worked while the first one did'
  const separation = 'of its children the parent logged the calls and their results, in call order'

  test.each<[string, string, (logs: Log[]) => void]>([
    ['a child is missing', lineage, (logs) => void logs.pop()],
    ['a child names another parent', lineage, edit(fix, { parentSession: 'x' as SessionId })],
    ['a child stands too deep', lineage, edit(fix, { delegationDepth: 2 })],
    ['a child comes from another backend', lineage, edit(fix, { origin: originOf('acp', 0) })],
    ['there are two parents', lineage, edit(fix, { delegationDepth: 0 })],
    ['the other process names no parent', lineage, edit(foreign, { parentSession: undefined })],
    ['the other process did nothing', process, drop(foreign, 2)],
    ['the fork inherited nothing', inheritance, edit(fork, { seedLength: undefined })],
    ['the fork inherited the open turn', inheritance, edit(fork, { seedLength: 9 })],
    ['another child inherited something', inheritance, edit(count, { seedLength: 8 })],
    ['a child failed', ends, replace(2, -1, event(9, 'turn/end', { reason: 'error' }))],
    ['a session is still open', ends, drop(2, -1)],
    ['the first child did not run the tests again', work, drop(1, -2)],
    [
      'a child came after the first one',
      overlap,
      replace(count, 0, event(50, 'turn/start', { turn: 1, model: 'm' })),
    ],
    [
      'the other process came after the first child',
      overlap,
      replace(foreign, 0, event(50, 'turn/start', { turn: 1, model: 'm' })),
    ],
    ['the parent did the work itself', separation, replace(0, 1, call(1, 'call-0', 'bash'))],
    ['the parent holds results out of order', separation, swapResults],
    ['a call of the parent failed', separation, replace(0, 4, failed(result(4, 'call-0')))],
  ])('%s', (_, claim, change) => {
    const logs = createLogs()

    change(logs)

    const broken = checksOfLogs(logs).filter(({ holds }) => !holds)
    expect(broken.map((check) => check.claim)).toContain(claim)
  })
})

/** The parent with two turns, and its children in call order. */
function createLogs(): Log[] {
  const id = 'parent' as SessionId
  const parent = createLog({ id, delegationDepth: 0 }, [
    ...[0, 1, 2].map((index) => call(index + 1, `call-${index}`, tools[index] ?? '')),
    ...[0, 1, 2].map((index) => result(index + 4, `call-${index}`)),
    event(7, 'turn/end', { reason: 'completed' }),
    event(8, 'turn/start', { turn: 2, model: 'm' }),
    call(9, 'call-3', 'subagent_fork'),
    result(9, 'call-3'),
  ])
  const children = kinds.map((provider, index) => {
    const own = { id: `child-${index}` as SessionId, delegationDepth: 1 }
    return createLog(
      {
        ...own,
        parentSession: id,
        origin: originOf(provider, index),
        ...(provider === 'fork' && { seedLength: 8 }),
      },
      provider === 'acp' ? callsOf('read', 'write') : callsOf('bash', 'read', 'edit', 'bash'),
    )
  })
  return [parent, ...children]
}

function originOf(provider: string, index: number): NonNullable<SessionHeader['origin']> {
  return { provider, callId: `call-${index}` }
}

function callsOf(...names: string[]): SessionEvent[] {
  return names.map((name, index) => call(index + 1, `own-${index}`, name))
}

function createLog(header: Partial<SessionHeader>, events: SessionEvent[]): Log {
  return {
    header: { createdAt: 0, cwd: '/', ...header } as SessionHeader,
    events: [
      event(0, 'turn/start', { turn: 1, model: 'm' }),
      ...events,
      event(9, 'turn/end', { reason: 'completed' }),
    ],
  }
}

function event<T extends SessionEvent['type']>(
  time: number,
  type: T,
  data: SessionEvent<T>['data'],
): SessionEvent<T> {
  return { seq: time, time, type, data } as SessionEvent<T>
}

function call(time: number, callId: string, name: string): SessionEvent<'tool/call'> {
  return event(time, 'tool/call', { callId, name, input: {} })
}

function result(time: number, callId: string): SessionEvent<'tool/result'> {
  return event(time, 'tool/result', { callId, name: 'subagent', content: [], isError: false })
}

/** Changes the header of a log. */
function edit(index: number, header: Partial<SessionHeader>) {
  return (logs: Log[]) => {
    const log = logs[index] as Log
    logs[index] = { ...log, header: { ...log.header, ...header } }
  }
}

/** Puts another event in the place of one. */
function replace(index: number, at: number, other: SessionEvent) {
  return (logs: Log[]) => {
    const log = logs[index] as Log
    logs[index] = { ...log, events: log.events.toSpliced(at, 1, other) }
  }
}

function drop(index: number, at: number) {
  return (logs: Log[]) => {
    const log = logs[index] as Log
    logs[index] = { ...log, events: log.events.toSpliced(at, 1) }
  }
}

function swapResults(logs: Log[]): void {
  replace(0, 4, result(4, 'call-1'))(logs)
  replace(0, 5, result(5, 'call-0'))(logs)
}

function failed(answer: SessionEvent<'tool/result'>): SessionEvent {
  return { ...answer, data: { ...answer.data, isError: true } }
}
