import { describe, expect, test } from 'vitest'
import { closeOpenTurn, type Session } from '../src/index.ts'
import { appendCall, appendCalls, appendResult, appendTurn, createSession } from './helpers.ts'

const turnEnd = { type: 'turn/end', data: { reason: 'interrupted' } }
const stepEnd = (step: number): object => ({ type: 'step/end', data: { step } })
const call = (callId: string): object => ({
  type: 'tool/call',
  data: { callId, name: 'work', input: { callId } },
})
const interrupted = (callId: string, text: RegExp): object => ({
  type: 'tool/result',
  data: {
    callId,
    name: 'work',
    content: [{ type: 'text', text: expect.stringMatching(text) as string }],
    isError: true,
    code: 'INTERRUPTED',
  },
})
const partly = /may have done part of its work/
const never = /was not executed/

describe('closeOpenTurn', () => {
  test.each<[string, (session: Session) => void, object[]]>([
    ['an empty log', () => {}, []],
    ['a finished turn', (session) => appendTurn(session, 'one'), []],
    [
      'several finished turns',
      (session) => {
        appendTurn(session, 'one')
        appendTurn(session, 'two')
      },
      [],
    ],
    [
      'a turn that has only begun',
      (session) => {
        appendTurn(session, 'one')
        session.append('turn/start', { turn: 2, model: 'model' })
      },
      [turnEnd],
    ],
    ['a turn between two steps', (session) => appendTurn(session, 'one', true), [turnEnd]],
    [
      'a step that waits for the model',
      (session) => {
        session.append('turn/start', { turn: 1, model: 'model' })
        session.append('step/start', { step: 1 })
      },
      [stepEnd(1), turnEnd],
    ],
    [
      'a message whose calls were never logged',
      (session) => appendCalls(session, ['a', 'b']),
      [call('a'), interrupted('a', never), call('b'), interrupted('b', never), stepEnd(1), turnEnd],
    ],
    [
      'a call that was running',
      (session) => {
        appendCalls(session, ['a'])
        appendCall(session, 'a')
      },
      [interrupted('a', partly), stepEnd(1), turnEnd],
    ],
    [
      'parallel calls of which the first has its result, before one that never began',
      (session) => {
        appendCalls(session, ['a', 'b', 'c'])
        appendCall(session, 'a')
        appendCall(session, 'b')
        appendResult(session, 'a')
      },
      [interrupted('b', partly), call('c'), interrupted('c', never), stepEnd(1), turnEnd],
    ],
    [
      'a step whose calls all have results',
      (session) => {
        appendCalls(session, ['a'])
        appendCall(session, 'a')
        appendResult(session, 'a')
      },
      [stepEnd(1), turnEnd],
    ],
    [
      'a second step whose calls have the ids of the first',
      (session) => {
        appendCalls(session, ['a'])
        appendCall(session, 'a')
        appendResult(session, 'a')
        session.append('step/end', { step: 1 })
        appendCalls(session, ['a'], 2)
        appendCall(session, 'a')
      },
      [interrupted('a', partly), stepEnd(2), turnEnd],
    ],
    [
      'a turn between its second step and its third',
      (session) => {
        appendCalls(session, [])
        session.append('step/end', { step: 1 })
        appendCalls(session, [], 2)
        session.append('step/end', { step: 2 })
      },
      [turnEnd],
    ],
    [
      'a second step that waits for the model',
      (session) => {
        appendCalls(session, ['a'])
        appendCall(session, 'a')
        appendResult(session, 'a')
        session.append('step/end', { step: 1 })
        session.append('step/start', { step: 2 })
      },
      [stepEnd(2), turnEnd],
    ],
  ])('balances %s', (_, given, expected) => {
    const session = createSession()
    given(session)

    const closing = closeOpenTurn([...session.events()])

    expect(closing).toEqual(expected)
  })
})
