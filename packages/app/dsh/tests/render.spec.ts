import { stripVTControlCharacters } from 'node:util'
import { Session, type SessionHeader, type SessionId } from '@deepseek-ai/dsh-session'
import type { SessionSummary } from '@deepseek-ai/dsh-session-jsonl'
import { describe, expect, test } from 'vitest'
import { renderSessionTree, renderTranscript } from '../src/render.ts'

const idOf = (text: string): SessionId => text as SessionId

function createHeader(overrides: Partial<SessionHeader> = {}): SessionHeader {
  return { id: idOf('one'), createdAt: 1000, cwd: '/', delegationDepth: 0, ...overrides }
}

function createSession(overrides: Partial<SessionHeader> = {}): Session {
  return new Session(createHeader(overrides), () => {})
}

/** Appends a turn that has not ended. */
function appendTurn(session: Session, text: string): void {
  session.append('turn/start', { turn: 1, model: 'model' })
  session.append('user/message', { content: [{ type: 'text', text }] })
}

const second = 1000
const now = 1_000_000_000

function createSummary(
  header: Partial<SessionHeader>,
  overrides: Partial<SessionSummary> = {},
): SessionSummary {
  return {
    header: createHeader(header),
    state: 'completed',
    updatedAt: now,
    turns: 1,
    usage: { inputTokens: 10, outputTokens: 5 },
    title: 'a title',
    ...overrides,
  }
}

function child(id: string, parent: string): SessionSummary {
  const origin = { provider: 'spawn' }
  return createSummary({ id: idOf(id), parentSession: idOf(parent), origin })
}

function tree(...sessions: SessionSummary[]): string[] {
  return renderSessionTree(sessions, now)
}

describe('renderSessionTree', () => {
  test('puts children below their parents, in columns', () => {
    const lines = tree(
      createSummary({ id: idOf('a') }, { updatedAt: now - 90 * second, title: 'first' }),
      child('a-1', 'a'),
      createSummary({ id: idOf('b') }, { state: 'max-tokens' }),
      child('a-1-1', 'a-1'),
      child('a-2', 'a'),
    )

    expect(lines).toEqual([
      'SESSION      STATE       AGE  TOKENS  TITLE',
      'a            completed   1m   15      first',
      '├─ a-1       completed   0s   15      [spawn] a title',
      '│  └─ a-1-1  completed   0s   15      [spawn] a title',
      '└─ a-2       completed   0s   15      [spawn] a title',
      'b            max-tokens  0s   15      a title',
    ])
  })

  test('indents no further than people can follow', () => {
    const chain = Array.from({ length: 1000 }, (_, index) => child(`s${index + 1}`, `s${index}`))

    const lines = tree(createSummary({ id: idOf('s0') }), ...chain)

    expect(lines).toHaveLength(1002)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(140)
  })

  test('puts at the top whose parent is not there, and loses none in a circle', () => {
    const lines = tree(
      child('orphan', 'gone'),
      child('self', 'self'),
      child('x', 'y'),
      child('y', 'x'),
    )

    expect(lines.map((line) => line.split(/ {2,}/)[0])).toEqual([
      'SESSION',
      'orphan',
      'self',
      'x',
      '└─ y',
    ])
  })

  test.each([
    [0, '0s'],
    [-5, '0s'],
    [59, '59s'],
    [60, '1m'],
    [3599, '59m'],
    [3600, '1h'],
    [86_399, '23h'],
    [86_400 * 400, '400d'],
  ])('shows an age of %i seconds as %s', (seconds, shown) => {
    const [, line] = tree(createSummary({}, { updatedAt: now - seconds * second }))

    expect(line?.split(/ {2,}/)[2]).toBe(shown)
  })

  test.each([
    [0, '0'],
    [999, '999'],
    [1000, '1.0k'],
    [123_456, '123.5k'],
  ])('shows %i tokens as %s', (inputTokens, shown) => {
    const [, line] = tree(createSummary({}, { usage: { inputTokens, outputTokens: 0 } }))

    expect(line?.split(/ {2,}/)[3]).toBe(shown)
  })

  test('lets no title drive the terminal, nor break its line', () => {
    const [, line] = tree(createSummary({}, { title: 'a\u001b[2Jb\r\nc\u009b31md\u0007' }))

    expect(line).toMatch(/ab cd$/)
  })
})

describe('renderTranscript', () => {
  test('shows who said what, the calls and their results', () => {
    const session = createSession()
    session.append('turn/start', { turn: 1, model: 'swift' })
    session.append('user/message', {
      content: [
        { type: 'text', text: 'look\n\nat this' },
        { type: 'image', mediaType: 'image/png', data: 'AAAA' },
      ],
    })
    session.append('step/start', { step: 1 })
    session.append('assistant/message', {
      content: [
        { type: 'reasoning', text: 'hm\nhm' },
        { type: 'text', text: 'I look.' },
        { type: 'tool-call', callId: 'c1', name: 'bash', input: { command: 'ls' } },
        { type: 'tool-call', callId: 'c2', name: 'read', input: {} },
      ],
      model: 'swift',
      usage: { inputTokens: 1, outputTokens: 1 },
      finish: 'tool-calls',
    })
    session.append('tool/call', { callId: 'c1', name: 'bash', input: { command: 'ls' } })
    session.append('tool/call', { callId: 'c2', name: 'read', input: {} })
    session.append('tool/result', {
      callId: 'c1',
      name: 'bash',
      content: [{ type: 'text', text: 'a\nb\n' }],
      isError: false,
    })
    session.append('tool/result', {
      callId: 'c2',
      name: 'read',
      content: [{ type: 'text', text: 'no' }],
      isError: true,
      code: 'ENOENT',
    })
    session.append('step/end', { step: 1 })
    session.append('context/message', {
      content: [{ type: 'text', text: 'be brief' }],
      source: 'plan',
    })
    session.append('step/start', { step: 2 })
    session.append('assistant/message', {
      content: [{ type: 'text', text: 'So' }],
      model: 'swift',
      usage: { inputTokens: 1, outputTokens: 1 },
      finish: 'max-tokens',
    })
    session.append('step/end', { step: 2 })
    session.append('turn/end', { reason: 'error', error: { code: 'X', message: 'too\nlong' } })

    expect(transcriptOf(session)).toEqual([
      'session one',
      'created 1970-01-01T00:00:01Z in /',
      '',
      '--- turn 1, swift, TIME ---',
      'user:',
      '  look',
      '',
      '  at this',
      '  (image, image/png)',
      'assistant:',
      '  ~ hm',
      '  ~ hm',
      '  I look.',
      '  -> bash (c1) {"command":"ls"}',
      '  -> read (c2) {}',
      'result of bash (c1):',
      '  a',
      '  b',
      'result of read (c2) failed with ENOENT:',
      '  no',
      'context from plan:',
      '  be brief',
      'assistant:',
      '  So',
      '  (cut: max-tokens)',
      'turn ended: error: too long',
    ])
  })

  test('says of a child where it comes from', () => {
    const header = createHeader({
      parentSession: idOf('parent'),
      seedLength: 6,
      delegationDepth: 2,
      origin: { provider: 'fork', callId: 'c1', label: 'look around' },
    })

    expect(renderTranscript({ header, events: [], length: 0 })).toEqual([
      'session one',
      'created 1970-01-01T00:00:01Z in /',
      'child of parent by fork, call c1, depth 2',
      'task: look around',
      'begins with the first 6 events of its parent',
    ])
  })

  test('says when the last turn has not ended, and when the last line is torn', () => {
    const session = createSession()
    appendTurn(session, 'hello')
    const torn = { line: 7, bytes: Buffer.from('{') }

    const lines = renderTranscript({
      header: session.header,
      events: [...session.events()],
      length: 0,
      torn,
    })

    expect(lines.slice(-2)).toEqual([
      'turn has not ended',
      'line 7 of the file is torn and left out',
    ])
  })

  test('lets no text drive the terminal or stand where the headings are', () => {
    const session = createSession({ cwd: '/a\u001b]0;evil\u0007b' })
    appendTurn(session, '\u001b[2J\u001b[Hturn ended: completed\r\u0000\u009b1m')

    const lines = transcriptOf(session)

    const text = lines.join('\n')
    expect(stripVTControlCharacters(text)).toBe(text)
    // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
    expect(lines).toContain('  turn ended: completed')
    expect(lines[1]).toBe('created 1970-01-01T00:00:01Z in /ab')
  })
})

function transcriptOf(session: ReturnType<typeof createSession>): string[] {
  const { header } = session
  return renderTranscript({ header, events: [...session.events()], length: 0 }).map((line) =>
    line.replace(/\d{4}-\d\d-\d\dT[\d:]+Z ---/, 'TIME ---'),
  )
}
