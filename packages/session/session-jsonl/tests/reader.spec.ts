import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isHarnessError, type JsonValue } from '@deepseek-ai/dsh-llm'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { eventLine, headerLine } from '../src/format.ts'
import { parseSession, readSession } from '../src/index.ts'
import { appendTurn, createHeader, createSession, idOf } from './helpers.ts'

const session = createSession({
  parentSession: idOf('parent'),
  delegationDepth: 1,
  origin: { provider: 'spawn', callId: 'call', label: 'look' },
})
appendTurn(session, 'héllo \u2028 "quoted"\nnext')
const lines = [headerLine(session.header), ...Array.from(session.events(), eventLine)]
const file = '/sessions/one.jsonl'

function parse(text: string) {
  return parseSession(Buffer.from(text), file)
}

/** What a reader says of the file with one line changed; the line counts from 1. */
function problemOf(line: number, text: string): string {
  const changed = lines.map((original, index) => (index === line - 1 ? `${text}\n` : original))
  return refusalOf(changed.join(''))
}

function refusalOf(text: string | Buffer): string {
  try {
    parseSession(Buffer.from(text as string), file)
  } catch (error) {
    if (isHarnessError(error)) return `${error.code} ${error.message}`
    throw error
  }
  return 'nothing is wrong'
}

const changed = 'nothing was changed'
const event = (seq: number, type: string, data: unknown, time: unknown = 1): string =>
  JSON.stringify({ seq, time, type, data })

describe('parseSession', () => {
  test('gives back header and events as they were written, frozen', () => {
    const { header, events, length, torn } = parse(lines.join(''))

    expect(header).toStrictEqual(session.header)
    expect(events).toStrictEqual([...session.events()])
    expect(Object.isFrozen(events[1]?.data)).toBe(true)
    expect(length).toBe(Buffer.byteLength(lines.join('')))
    expect(torn).toBeUndefined()
  })

  test('reads data that is nested as deep as a log may hold', () => {
    const deep = createSession()
    let input: JsonValue = 'bottom'
    for (let depth = 1; depth < 100; depth += 1) input = [input]
    deep.append('turn/start', { turn: 1, model: 'm' })
    deep.append('tool/call', { callId: 'c', name: 'dig', input })

    const { events } = parse(
      headerLine(deep.header) + Array.from(deep.events(), eventLine).join(''),
    )

    expect(events).toStrictEqual([...deep.events()])
  })

  test('takes a header without events', () => {
    expect(parse(lines[0]!)).toMatchObject({ header: session.header, events: [] })
  })

  test('counts the events of a fork from the end of its seed', () => {
    const header = headerLine(createHeader({ parentSession: idOf('parent'), seedLength: 7 }))

    const { events } = parse(`${header}${event(7, 'turn/end', { reason: 'aborted' })}\n`)

    expect(events[0]?.seq).toBe(7)
  })

  test.each([
    ['half a line', '{"seq":6,"time"'],
    ['a whole event without its newline', event(6, 'turn/start', { turn: 2, model: 'm' })],
    ['half a character', Buffer.from([0xe2, 0x82])],
  ])('sets aside %s at the end', (_, tail) => {
    const whole = Buffer.from(lines.join(''))

    const { events, length, torn } = parseSession(
      Buffer.concat([whole, Buffer.from(tail as string)]),
      file,
    )

    expect(events).toHaveLength(6)
    expect(length).toBe(whole.length)
    expect(torn).toEqual({ line: 8, bytes: Buffer.from(tail as string) })
  })

  test.each([
    ['it is not JSON', 3, '{"seq":1,"time"'],
    ['it is not JSON', 3, ''],
    ['it is no object', 4, '7'],
    ['unknown event type "turn/begin"', 2, event(0, 'turn/begin', {})],
    ['unknown event type "toString"', 2, event(0, 'toString', {})],
    ['unknown event type undefined', 2, '{}'],
    ['seq is 4, expected 3', 5, event(4, 'turn/start', { turn: 2, model: 'm' })],
    ['the event has no time', 2, event(0, 'turn/start', { turn: 1, model: 'm' }, null)],
    ['the event has no time', 2, event(0, 'turn/start', { turn: 1, model: 'm' }, 1e20)],
    ['createdAt: expected a time', 1, headerLine({ ...session.header, createdAt: 1e20 }).trim()],
    ['it: Invalid input: expected object, received null', 4, event(2, 'step/start', null)],
    [
      'turn: Invalid input: expected number, received string',
      2,
      event(0, 'turn/start', { turn: '1', model: 'm' }),
    ],
    [
      'content: Invalid input: expected array, received string',
      3,
      event(1, 'user/message', { content: 'hi' }),
    ],
    [
      'content.0.text: Invalid input: expected string, received object',
      3,
      event(1, 'user/message', { content: [{ type: 'text', text: {} }] }),
    ],
    [
      'content.0.type: Invalid input: expected string, received undefined',
      3,
      event(1, 'user/message', { content: [{}] }),
    ],
    [
      'usage: Invalid input: expected object, received undefined',
      5,
      event(3, 'assistant/message', { content: [], model: 'm', finish: 'stop' }),
    ],
    [
      'callId: Invalid input: expected string, received undefined',
      5,
      event(3, 'tool/call', { name: 'bash' }),
    ],
    [
      'isError: Invalid input: expected boolean, received undefined',
      5,
      event(3, 'tool/result', { callId: 'c', name: 'n', content: [] }),
    ],
    ['reason: Invalid input: expected string, received undefined', 7, event(5, 'turn/end', {})],
    ['it is not a session header', 1, '{"type":"other"}'],
    ['cwd: must be an absolute path', 1, headerLine(createHeader({ cwd: 'here' })).trimEnd()],
    [
      'delegationDepth: Too small: expected number to be >=0',
      1,
      headerLine(createHeader({ delegationDepth: -1 })).trimEnd(),
    ],
    [
      'origin.toolFilters.0: Unrecognized key: "denied"',
      1,
      headerLine(
        createHeader({ origin: { provider: 'p', toolFilters: [{ denied: ['bash'] } as never] } }),
      ).trimEnd(),
    ],
    [
      'seedLength: Invalid input: expected int, received number',
      1,
      headerLine(createHeader({ seedLength: 0.5 })).trimEnd(),
    ],
  ])('names file and line when %s', (why, line, text) => {
    expect(problemOf(line, text)).toBe(
      `SESSION_CORRUPT ${file}:${line}: the session cannot be read: ${why}; ${changed}`,
    )
  })

  test('finds a line that is missing', () => {
    expect(refusalOf(lines.toSpliced(3, 1).join(''))).toContain(
      `${file}:4: the session cannot be read: seq is 3, expected 2`,
    )
  })

  test.each([[1], [3]])('names line %i when its bytes are not UTF-8', (line) => {
    const bytes = Buffer.from(lines.join(''))
    let start = 0
    for (let passed = 1; passed < line; passed += 1) start = bytes.indexOf('\n', start) + 1
    bytes[start + 10] = 0xff

    expect(() => parseSession(bytes, file)).toThrow(
      `${file}:${line}: the session cannot be read: it is not UTF-8`,
    )
  })

  test.each([
    ['an empty file', ''],
    ['a torn header', lines[0]!.slice(0, 20)],
  ])('refuses %s', (_, text) => {
    expect(refusalOf(text)).toBe(
      `SESSION_CORRUPT ${file}:1: the session cannot be read: it has no whole line; ${changed}`,
    )
  })

  test.each([2, 0, 'x', undefined])('refuses the format version %s, and says so', (version) => {
    const header = JSON.stringify({ type: 'session', version, header: {} })

    expect(problemOf(1, header)).toBe(
      `SESSION_VERSION ${file}:1: session format version "${version}" is not supported (supported: 1); ${changed}`,
    )
  })
})

describe('readSession', () => {
  test('reads the file of an id', async () => {
    const root = await temporaryFolder()
    await writeFile(join(root, 'one.jsonl'), lines.join(''))

    await expect(readSession(root, idOf('one'))).resolves.toMatchObject({ header: session.header })
  })

  test.each([
    ['is not there', 'one'],
    ['was never written', 'two'],
  ])('tells a session that %s', async (_, other) => {
    const root = await temporaryFolder()
    await writeFile(join(root, `${other}.jsonl`), '')

    await expect(readSession(root, idOf('two'))).rejects.toThrow(
      expect.objectContaining({
        code: 'UNKNOWN_SESSION',
        message: `no session "two" in "${root}"`,
      }) as Error,
    )
  })

  test('refuses a file that holds another session than its name says', async () => {
    const root = await temporaryFolder()
    await writeFile(join(root, 'two.jsonl'), lines.join(''))

    await expect(readSession(root, idOf('two'))).rejects.toThrow(
      `${join(root, 'two.jsonl')}:1: the session cannot be read: it is session "one" under another name`,
    )
  })

  test.each(['../one', 'a/b', '..', '', 'one.jsonl', 'a\0', 'x'.repeat(129)])(
    'refuses the id %j before it touches a file',
    async (id) => {
      await expect(readSession('/nowhere', idOf(id))).rejects.toThrow(
        expect.objectContaining({ code: 'INVALID_SESSION_ID' }) as Error,
      )
    },
  )

  test('hands on what the file system says', async () => {
    await expect(readSession('/dev/null', idOf('one'))).rejects.toThrow('ENOTDIR')
  })
})
