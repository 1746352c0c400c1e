import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as tick } from 'node:timers/promises'
import type { Session } from '@deepseek-ai/dsh-session'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { lockOwner, LockTable } from '../src/lock.ts'
import { parseSession } from '../src/reader.ts'
import { SessionWriter } from '../src/writer.ts'
import {
  appendTurn,
  createSession,
  idOf,
  linesOf,
  failing,
  namesIn,
  openFiles,
  typesIn,
  watchWrites,
} from './helpers.ts'

const turnTypes = [
  'turn/start',
  'user/message',
  'step/start',
  'assistant/message',
  'step/end',
  'turn/end',
]

async function createWriter(session = createSession(), name = 'sessions/one.jsonl') {
  const file = join(await temporaryFolder(), name)
  return { file, session, writer: writerFor(file, session) }
}

/** A writer for a session that is new, or resumed from what the file holds. */
function writerFor(file: string, session: Session, isResumed = false): SessionWriter {
  const stored = isResumed ? parseSession(readFileSync(file), file) : undefined
  return new SessionWriter({ file, session, locks: new LockTable(dirname(file)), stored })
}

/** The session that a file holds, with a writer that goes on with it. */
function resume(file: string): { session: Session; writer: SessionWriter } {
  const { header, events } = parseSession(readFileSync(file), file)
  const session = createSession(header, undefined, events)
  return { session, writer: writerFor(file, session, true) }
}

function noSpace(): never {
  throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
}

describe('SessionWriter', () => {
  test('writes the header and what was appended since the last flush, in one write', async () => {
    const { file, session, writer } = await createWriter()
    const writes = watchWrites()
    appendTurn(session)

    writer.flush()
    expect(typesIn(file)).toEqual(turnTypes)
    expect(writes).toEqual([statSync(file).size])

    appendTurn(session)
    writer.flush()
    writer.flush()

    expect(linesOf(file)[0]).toStrictEqual({ type: 'session', version: 1, header: session.header })
    expect(typesIn(file)).toEqual([...turnTypes, ...turnTypes])
    expect(writes).toHaveLength(2)
    writer.close()
  })

  test('makes no file before there is anything to write', async () => {
    const { file, writer } = await createWriter()

    writer.flush()
    writer.close()

    expect(existsSync(dirname(file))).toBe(false)
  })

  test('keeps folder and files to their owner', async () => {
    const { file, session, writer } = await createWriter()
    appendTurn(session)

    writer.flush()

    expect(statSync(dirname(file)).mode & 0o777).toBe(0o700)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    writer.close()
  })

  test('writes none of the events that a fork has inherited', async () => {
    const parent = createSession()
    appendTurn(parent)
    const seed = parent.completedTurns()
    const child = createSession({ id: idOf('two'), seedLength: 6 }, seed)
    const { file, writer } = await createWriter(child)
    appendTurn(child)

    writer.close()

    expect(linesOf(file).map(({ seq }) => seq)).toEqual([undefined, 6, 7, 8, 9, 10, 11])
  })

  test('goes on behind what the file of a resumed session holds', async () => {
    const first = await createWriter()
    appendTurn(first.session)
    first.writer.close()
    const before = readFileSync(first.file, 'utf8')

    const { session, writer } = resume(first.file)
    appendTurn(session, 'again')
    writer.close()

    expect(readFileSync(first.file, 'utf8').startsWith(before)).toBe(true)
    expect(typesIn(first.file)).toEqual([...turnTypes, ...turnTypes])
  })

  test('keeps a torn last line in a file beside, and goes on without it', async () => {
    const first = await createWriter()
    appendTurn(first.session)
    first.writer.close()
    appendFileSync(first.file, '{"seq":6,"ti')

    const { session, writer } = resume(first.file)
    appendTurn(session, 'again')
    writer.close()

    expect(typesIn(first.file)).toEqual([...turnTypes, ...turnTypes])
    const folder = dirname(first.file)
    const [torn] = readdirSync(folder).filter((name) => name.includes('.torn-'))
    expect(readFileSync(join(folder, torn!), 'utf8')).toBe('{"seq":6,"ti')
  })

  test('writes soon what no flush comes for, and no more than a flush would', async () => {
    const { file, session, writer } = await createWriter()
    const writes = watchWrites()
    session.append('turn/start', { turn: 1, model: 'model' })
    writer.writeSoon()
    writer.writeSoon()
    session.append('user/message', { content: [{ type: 'text', text: 'hello' }] })

    await tick()
    expect(typesIn(file)).toEqual(['turn/start', 'user/message'])
    writer.writeSoon()
    session.append('step/start', { step: 1 })
    writer.flush()
    session.append('step/end', { step: 1 })
    await tick()

    expect(writes).toHaveLength(2)
    writer.writeSoon()
    await tick()
    expect(typesIn(file).at(-1)).toBe('step/end')
    writer.close()
    expect(writes).toHaveLength(3)
  })

  test('goes on after a short write', async () => {
    const { file, session, writer } = await createWriter()
    const writes = watchWrites((call, length) => (call === 1 ? 7 : length))
    appendTurn(session)

    writer.close()

    expect(typesIn(file)).toEqual(turnTypes)
    expect(writes).toHaveLength(2)
  })
})

describe('SessionWriter failures', () => {
  test('take back a write that failed half-way; the next flush writes it all', async () => {
    const { file, session, writer } = await createWriter()
    appendTurn(session)
    writer.flush()
    const before = readFileSync(file)
    watchWrites((call, length) => (call === 1 ? 7 : call === 2 ? noSpace() : length))
    appendTurn(session, 'second')

    expect(() => writer.flush()).toThrow(
      expect.objectContaining({
        code: 'SESSION_WRITE_FAILED',
        message: `cannot write "${file}": ENOSPC: no space left on device, write`,
      }) as Error,
    )
    expect(readFileSync(file)).toEqual(before)
    writer.close()
    expect(typesIn(file)).toEqual([...turnTypes, ...turnTypes])
  })

  test('leave no file of a session whose first write failed, and nothing open', async () => {
    const { file, session, writer } = await createWriter()
    const open = openFiles()
    watchWrites(() => noSpace())
    appendTurn(session)

    expect(() => writer.flush()).toThrow('ENOSPC')
    expect(() => writer.close()).toThrow('ENOSPC')

    expect(namesIn(dirname(file))).toEqual([])
    expect(openFiles()).toEqual(open)
  })

  test('of a first write are made up for by the next flush', async () => {
    const { file, session, writer } = await createWriter()
    watchWrites((call, length) => (call === 1 ? 7 : call === 2 ? noSpace() : length))
    appendTurn(session)

    expect(() => writer.flush()).toThrow('ENOSPC')
    expect(readFileSync(file, 'utf8')).toBe('')
    writer.close()

    expect(typesIn(file)).toEqual(turnTypes)
  })

  test.each([
    ['first', 0, turnTypes],
    ['later', 1, [...turnTypes, ...turnTypes]],
  ])(
    'of a %s write are told also when it cannot be taken back, and made up for',
    async (_, earlier, types) => {
      const { file, session, writer } = await createWriter()
      for (let turn = 0; turn < earlier; turn += 1) appendTurn(session)
      writer.flush()
      watchWrites((call, length) => (call === 1 ? 7 : call < 4 ? noSpace() : length))
      failing('ftruncateSync', 'EIO: truncate')
      appendTurn(session)

      expect(() => writer.flush()).toThrow('ENOSPC')
      expect(() => writer.flush()).toThrow('ENOSPC')
      writer.close()

      expect(typesIn(file)).toEqual(types)
      expect(lockOwner(file)).toBeUndefined()
    },
  )

  test('to close are told, and leave no lock', async () => {
    const { file, session, writer } = await createWriter()
    appendTurn(session)
    writer.flush()
    failing('closeSync', 'EIO: close')

    expect(() => writer.close()).toThrow(
      expect.objectContaining({
        code: 'SESSION_WRITE_FAILED',
        message: `cannot write "${file}": EIO: close`,
      }) as Error,
    )

    expect(lockOwner(file)).toBeUndefined()
    expect(() => writer.close()).not.toThrow()
  })

  test('to close hide no failure to write', async () => {
    const { file, session, writer } = await createWriter()
    appendTurn(session)
    writer.flush()
    watchWrites(() => noSpace())
    failing('closeSync', 'EIO: close')
    appendTurn(session)

    expect(() => writer.close()).toThrow('ENOSPC')

    expect(lockOwner(file)).toBeUndefined()
  })

  test('to open are told also when the file cannot be closed, and leave no lock', async () => {
    const first = await createWriter()
    appendTurn(first.session)
    first.writer.close()
    const { writer } = resume(first.file)
    appendFileSync(first.file, 'x')
    failing('closeSync', 'EIO: close')

    expect(() => writer.open()).toThrow('somebody else has changed it')

    expect(lockOwner(first.file)).toBeUndefined()
  })

  test('tell what is in the place of the folder, and are over when it is gone', async () => {
    const { file, session, writer } = await createWriter()
    writeFileSync(dirname(file), 'a file')
    appendTurn(session)

    expect(() => writer.flush()).toThrow(`cannot write "${file}": ENOTDIR`)
    rmSync(dirname(file))
    writer.close()

    expect(typesIn(file)).toEqual(turnTypes)
  })

  test('refuse to overwrite the file of another session', async () => {
    const { file, session, writer } = await createWriter()
    mkdirSync(dirname(file))
    writeFileSync(file, 'somebody else')
    appendTurn(session)

    expect(() => writer.flush()).toThrow(
      expect.objectContaining({
        code: 'SESSION_EXISTS',
        message: `"${file}" belongs to another session`,
      }) as Error,
    )
    expect(() => writer.close()).toThrow('belongs to another session')
    expect(readFileSync(file, 'utf8')).toBe('somebody else')
    expect(namesIn(dirname(file))).toEqual(['one.jsonl'])
  })

  test('refuse to write behind what somebody else has appended', async () => {
    const { file, session, writer } = await createWriter()
    appendTurn(session)
    writer.flush()
    appendFileSync(file, 'x')
    const before = readFileSync(file)
    appendTurn(session)

    expect(() => writer.flush()).toThrow(
      expect.objectContaining({
        code: 'SESSION_CHANGED',
        message: `"${file}" has ${before.length} bytes in place of ${before.length - 1}: somebody else has changed it, so nothing more is written to it`,
      }) as Error,
    )
    expect(() => writer.close()).toThrow('somebody else has changed it')
    expect(readFileSync(file)).toEqual(before)
  })

  test('refuse to resume from a file that was changed since it was read', async () => {
    const first = await createWriter()
    appendTurn(first.session)
    first.writer.close()
    const open = openFiles()
    const { writer } = resume(first.file)
    appendFileSync(first.file, 'x')

    expect(() => writer.open()).toThrow('somebody else has changed it')
    expect(openFiles()).toEqual(open)
    expect(namesIn(dirname(first.file))).toEqual(['one.jsonl'])
  })

  test('refuse to write into a file that was removed', async () => {
    const { file, session, writer } = await createWriter()
    appendTurn(session)
    writer.flush()
    rmSync(file)
    appendTurn(session)

    expect(() => writer.flush()).toThrow(`"${file}" was removed: somebody else has changed it`)
    expect(() => writer.close()).toThrow('was removed')
  })

  test('do not come from a folder that was moved: the file goes on in its new place', async () => {
    const { file, session, writer } = await createWriter()
    appendTurn(session)
    writer.flush()
    renameSync(dirname(file), `${dirname(file)}-2`)
    appendTurn(session)

    writer.close()

    expect(typesIn(join(`${dirname(file)}-2`, 'one.jsonl'))).toEqual([...turnTypes, ...turnTypes])
  })

  test('of a write that comes soon are left to the next flush', async () => {
    const { file, session, writer } = await createWriter()
    writeFileSync(dirname(file), 'a file')
    appendTurn(session)

    writer.writeSoon()
    await tick()

    expect(() => writer.close()).toThrow(`cannot write "${file}"`)
  })
})
