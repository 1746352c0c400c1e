import { describe, expect, test, vi } from 'vitest'
import { type AppendListener, Session, SessionError, type SessionPrefix } from '../src/index.ts'
import { appendTurn, createHeader, createSession, typesOf } from './helpers.ts'

/** @throws when there is no completed turn to share. */
function prefixOf(session: Session): SessionPrefix {
  const prefix = session.completedTurns()
  if (prefix === undefined) throw new Error('no completed turn')
  return prefix
}

describe('Session.append', () => {
  test('numbers the events from 0 in the order in which they came', () => {
    const session = createSession()

    appendTurn(session, 'one')

    expect([...session.events()].map(({ seq, type }) => [seq, type])).toEqual([
      [0, 'turn/start'],
      [1, 'user/message'],
      [2, 'step/start'],
      [3, 'assistant/message'],
      [4, 'step/end'],
      [5, 'turn/end'],
    ])
    expect(session.length).toBe(6)
    expect(session.at(5)?.type).toBe('turn/end')
    expect(session.at(6)).toBeUndefined()
  })

  test('stamps an event with the time and freezes all of it', () => {
    const session = createSession()
    const before = Date.now()

    const event = session.append('user/message', { content: [{ type: 'text', text: 'hi' }] })

    expect(event.time).toBeGreaterThanOrEqual(before)
    expect(event.time).toBeLessThanOrEqual(Date.now())
    expect(Object.isFrozen(event)).toBe(true)
    expect(Object.isFrozen(event.data.content[0])).toBe(true)
    expect(session.at(0)).toBe(event)
  })

  test('tells of an event after it was committed', () => {
    const seen: [number, number][] = []
    const session = new Session(createHeader(), ({ length }, { seq }) => {
      seen.push([length, seq])
    })

    appendTurn(session, 'one')

    expect(seen).toEqual([0, 1, 2, 3, 4, 5].map((seq) => [seq + 1, seq]))
  })

  test('adds nothing when the data is not JSON', () => {
    const onAppend = vi.fn<AppendListener>()
    const session = new Session(createHeader(), onAppend)
    const data = { step: Number.NaN }

    expect(() => session.append('step/start', data)).toThrow(SessionError)

    expect(session.length).toBe(0)
    expect(onAppend).not.toHaveBeenCalled()
  })
})

describe('Session folds', () => {
  test('are empty for an empty log', () => {
    const session = createSession()

    expect(session.completedTurns()).toBeUndefined()
    expect(session.completedLength).toBe(0)
    expect(session.lastTurnEnd).toBeUndefined()
    expect(session.turnCount).toBe(0)
    expect(session.usage).toEqual({ inputTokens: 0, outputTokens: 0 })
    expect(session.deriveMessages()).toEqual([])
  })

  test('count turns and tokens, and know how the last turn ended', () => {
    const session = createSession()

    appendTurn(session, 'one')
    appendTurn(session, 'two', true)
    session.append('turn/end', { reason: 'aborted' })

    expect(session.turnCount).toBe(2)
    expect(session.usage).toEqual({ inputTokens: 20, outputTokens: 10 })
    expect(session.lastTurnEnd).toEqual({ reason: 'aborted' })
  })

  test('offer the finished turns only while another one is open', () => {
    const session = createSession()
    appendTurn(session, 'one')

    appendTurn(session, 'two', true)

    expect(session.completedTurns()).toEqual({ session, length: 6 })
    expect(session.completedLength).toBe(6)
  })

  test('count the events that a resumed session comes with', () => {
    const stored = createSession()
    appendTurn(stored, 'one')

    const session = new Session(createHeader(), () => {}, undefined, [...stored.events()])

    expect(session.turnCount).toBe(1)
    expect(session.completedLength).toBe(6)
    expect(session.usage).toEqual(stored.usage)
    expect(session.append('turn/start', { turn: 2, model: 'model' }).seq).toBe(6)
  })
})

describe('Session seed', () => {
  test('shares the very events of the parent', () => {
    const parent = createSession()
    appendTurn(parent, 'one')

    const child = createSession(prefixOf(parent))

    expect(child.length).toBe(6)
    expect([...child.events()].every((event, seq) => event === parent.at(seq))).toBe(true)
  })

  test('reads nothing of the parent when a child is made, however long the log is', () => {
    const parent = createSession()
    for (let turn = 0; turn < 1000; turn += 1) appendTurn(parent, `turn ${turn}`)
    const at = vi.spyOn(parent, 'at')
    const events = vi.spyOn(parent, 'events')

    const child = createSession(prefixOf(parent))

    expect(child.length).toBe(6000)
    expect(at).not.toHaveBeenCalled()
    expect(events).not.toHaveBeenCalled()
  })

  test('ends before the turn that the parent had open, and never grows with the parent', () => {
    const parent = createSession()
    appendTurn(parent, 'one')
    appendTurn(parent, 'two', true)

    const child = createSession(prefixOf(parent))
    parent.append('turn/end', { reason: 'completed' })
    appendTurn(parent, 'three')

    expect(child.length).toBe(6)
    expect(child.at(6)).toBeUndefined()
  })

  test('is followed by the own events, numbered on', () => {
    const parent = createSession()
    appendTurn(parent, 'one')
    const child = createSession(prefixOf(parent))

    appendTurn(child, 'task')

    expect([...child.events()].map(({ seq }) => seq)).toEqual([...Array(12).keys()])
    expect(typesOf(child.events(6))).toEqual(typesOf(parent.events()))
    expect(parent.length).toBe(6)
  })

  test('is not counted as turns, ends or tokens of the child', () => {
    const parent = createSession()
    appendTurn(parent, 'one')

    const child = createSession(prefixOf(parent))

    expect(child.turnCount).toBe(0)
    expect(child.lastTurnEnd).toBeUndefined()
    expect(child.usage).toEqual({ inputTokens: 0, outputTokens: 0 })
    expect(child.completedLength).toBe(6)
  })

  test('is shared over several generations, each with its own continuation', () => {
    const generations = [createSession()]
    appendTurn(generations[0]!, 'generation 0')
    for (let index = 1; index < 5; index += 1) {
      const child = createSession(prefixOf(generations[index - 1]!))
      appendTurn(child, `generation ${index}`)
      generations.push(child)
    }

    const last = generations.at(-1)!

    expect(last.length).toBe(30)
    for (const [index, session] of generations.entries()) {
      expect(last.at(index * 6)).toBe(session.at(index * 6))
    }
    expect(last.deriveMessages().map(({ content }) => content[0])).toMatchObject(
      [0, 1, 2, 3, 4].flatMap((index) => [
        { text: `generation ${index}` },
        { text: `re: generation ${index}` },
      ]),
    )
  })
})

describe('Session.deriveMessages', () => {
  test('gives the conversation that a model sees', () => {
    const session = createSession()
    session.append('turn/start', { turn: 1, model: 'model' })
    session.append('user/message', { content: [{ type: 'text', text: 'question' }] })
    session.append('context/message', {
      content: [{ type: 'text', text: 'a child has finished' }],
      source: 'subagent',
    })
    session.append('step/start', { step: 1 })
    session.append('assistant/message', {
      content: [{ type: 'tool-call', callId: 'a', name: 'work', input: {} }],
      model: 'model',
      usage: { inputTokens: 1, outputTokens: 1 },
      finish: 'tool-calls',
    })
    session.append('tool/call', { callId: 'a', name: 'work', input: {} })
    session.append('tool/result', {
      callId: 'a',
      name: 'work',
      content: [{ type: 'text', text: 'no' }],
      isError: true,
      code: 'TOOL_FAILED',
    })
    session.append('step/end', { step: 1 })

    expect(session.deriveMessages()).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'question' }] },
      { role: 'user', content: [{ type: 'text', text: 'a child has finished' }] },
      {
        role: 'assistant',
        content: [{ type: 'tool-call', callId: 'a', name: 'work', input: {} }],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            callId: 'a',
            name: 'work',
            content: [{ type: 'text', text: 'no' }],
            isError: true,
          },
        ],
      },
    ])
  })

  test('leaves out a reply that was cut before its first block', () => {
    const session = createSession()
    session.append('assistant/message', {
      content: [],
      model: 'model',
      usage: { inputTokens: 0, outputTokens: 0 },
      finish: 'aborted',
    })

    expect(session.deriveMessages()).toEqual([])
  })

  test('reads each event once, however often it is asked', () => {
    const session = createSession()
    const at = vi.spyOn(session, 'at')

    for (let turn = 0; turn < 50; turn += 1) {
      appendTurn(session, `turn ${turn}`)
      session.deriveMessages()
      session.deriveMessages()
    }

    expect(at).toHaveBeenCalledTimes(300)
    expect(session.deriveMessages()).toHaveLength(100)
  })
})
