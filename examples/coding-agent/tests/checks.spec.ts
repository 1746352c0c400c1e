import type { SessionEvent, SessionHeader, SessionId } from '@deepseek-ai/dsh-session'
import { describe, expect, test } from 'vitest'
import { checksOfLogs, type Log } from '../checks.ts'

const callIds = ['call-1', 'call-2', 'call-3']

describe('checksOfLogs', () => {
  test('every claim holds for three children that worked side by side', () => {
    const logs = createLogs()

    expect(checksOfLogs(logs).filter(({ holds }) => !holds)).toEqual([])
    expect(checksOfLogs(logs.toReversed()).filter(({ holds }) => !holds)).toEqual([])
  })

  test('one claim fails when there is no session at all', () => {
    expect(checksOfLogs([])).toEqual([{ claim: 'the parent has a session', holds: false }])
  })

  const lineage = 'there is one parent, and three children that name it and the call that made them'
  const separation =
    'of its children the parent logged the three calls and their results, in call order'
  const work = 'the first child ran the tests, read, edited, and ran them again'

  test.each<[string, string[], (logs: Log[]) => void]>([
    ['a child is missing', [lineage], (logs) => void logs.pop()],
    ['a child names another parent', [lineage], edit(1, { parentSession: 'x' as SessionId })],
    ['a child stands too deep', [lineage], edit(1, { delegationDepth: 2 })],
    ['a child comes from another backend', [lineage], edit(1, { origin: { provider: 'fork' } })],
    ['there are two parents', [lineage], edit(1, { delegationDepth: 0 })],
    [
      'a child failed',
      ['every session ended as completed'],
      replace(2, -1, event(9, 'turn/end', { reason: 'error' })),
    ],
    ['a session is still open', ['every session ended as completed'], drop(2, -1)],
    ['the first child did not run the tests again', [work], drop(1, -2)],
    [
      'the children worked one after another',
      ['the children worked at the same time'],
      replace(3, 0, event(50, 'turn/start', { turn: 1, model: 'm' })),
    ],
    ['the parent did the work itself', [separation], replace(0, 1, call(1, 'call-1', 'bash'))],
    ['the parent holds results out of order', [separation], swapResults],
    [
      'a call of the parent failed',
      [separation],
      replace(0, 4, {
        ...result(4, 'call-1'),
        data: { ...result(4, 'call-1').data, isError: true },
      }),
    ],
  ])('%s', (_, claims, change) => {
    const logs = createLogs()

    change(logs)

    const failed = checksOfLogs(logs).filter(({ holds }) => !holds)
    expect(failed.map(({ claim }) => claim)).toEqual(expect.arrayContaining(claims))
  })
})

function createLogs(): Log[] {
  const parent = createLog({ id: 'parent' as SessionId, delegationDepth: 0 }, [
    ...callIds.map((callId, index) => call(index + 1, callId, 'subagent')),
    ...callIds.map((callId, index) => result(index + 4, callId)),
  ])
  const children = callIds.map((callId) =>
    createLog(
      {
        id: `child-of-${callId}` as SessionId,
        parentSession: parent.header.id,
        delegationDepth: 1,
        origin: { provider: 'spawn', callId },
      },
      ['bash', 'read', 'edit', 'bash'].map((name, index) => call(index + 1, `own-${index}`, name)),
    ),
  )
  return [parent, ...children]
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
  replace(0, 4, result(4, 'call-2'))(logs)
  replace(0, 5, result(5, 'call-1'))(logs)
}
