import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assertUnowned, lockOwner, LockTable } from '../src/lock.ts'
import { ownMark } from '../src/owner.ts'
import { namesIn } from './helpers.ts'

async function folder() {
  const root = await temporaryFolder()
  const file = join(root, 'one.jsonl')
  return { root, file, lock: `${file}.lock`, table: new LockTable(root) }
}

async function program(name: string, ...args: string[]): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL(`./fixtures/${name}.ts`, import.meta.url)), args)
  const gone = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await gone
  })
  await once(child, 'message')
  return child
}

/** Another process that holds the lock of a file. */
async function otherProcess(file: string) {
  const child = await program('holds-lock', file)
  return {
    pid: child.pid,
    kill: async () => {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
  }
}

/** What every racer answers to an order. */
function ask(racers: readonly ChildProcess[], order: object): Promise<unknown[]> {
  return Promise.all(
    racers.map(async (racer) => {
      const answer = once(racer, 'message')
      racer.send(order)
      return (await answer)[0] as unknown
    }),
  )
}

/** The mark of a process that has ended. */
const deadMark = `${spawnSync('true').pid} 1\n`

describe('LockTable', () => {
  test('names the process that holds a lock, until it is given back', async () => {
    const { root, file, table } = await folder()

    const release = table.take(file)

    expect(lockOwner(file)).toBe(process.pid)
    expect(namesIn(root)).toEqual(['one.jsonl.lock'])
    release()
    expect(lockOwner(file)).toBeUndefined()
    expect(namesIn(root)).toEqual([])
    expect(release).not.toThrow()
  })

  test('refuses a file that another process writes, and names it', async () => {
    const { file, table } = await folder()
    const { pid } = await otherProcess(file)

    expect(() => table.take(file)).toThrow(
      expect.objectContaining({
        code: 'SESSION_IN_USE',
        message: `"${file}" is being written by process ${pid}: end it, or go on with another session`,
      }) as Error,
    )
    expect(() => assertUnowned(file)).toThrow(`by process ${pid}`)
  })

  test('refuses a file that another store of this process writes', async () => {
    const { root, file, table } = await folder()
    table.take(file)

    expect(() => new LockTable(root).take(file)).toThrow(`by process ${process.pid}`)
  })

  test('takes over the lock of a process that was killed', async () => {
    const { file, table } = await folder()
    const other = await otherProcess(file)

    await other.kill()
    expect(lockOwner(file)).toBeUndefined()
    table.take(file)

    expect(lockOwner(file)).toBe(process.pid)
  })

  test.each([
    ['of a process that has ended', deadMark],
    ['of an earlier process with the same pid', `${process.pid} 1\n`],
    ['of an earlier process with the pid of a living one', `${process.ppid} 1\n`],
    ['without a process', ''],
    ['with anything else in it', 'what?'],
    ['with a pid that no process can have', '-1 1\n'],
  ])('takes over a lock %s', async (_, text) => {
    const { root, file, lock, table } = await folder()
    writeFileSync(lock, text)

    expect(lockOwner(file)).toBeUndefined()
    table.take(file)

    expect(readFileSync(lock, 'utf8')).toBe(`${ownMark}\n`)
    expect(namesIn(root)).toEqual(['one.jsonl.lock'])
  })

  test(
    'lets exactly one of many that race for a stale lock have it',
    { timeout: 60_000 },
    async () => {
      const { root } = await folder()
      const racers = await Promise.all([1, 2, 3, 4].map(() => program('races-for-lock')))
      const outcomes: unknown[][] = []

      for (let round = 0; round < 100; round += 1) {
        const file = join(root, `${round}.jsonl`)
        writeFileSync(`${file}.lock`, deadMark)
        // A racer that died while it took over leaves this too.
        if (round % 2 === 1) writeFileSync(`${file}.lock.takeover`, deadMark)
        outcomes.push(await ask(racers, { file, at: Date.now() + 5 }))
        await ask(racers, { at: 0 })
      }

      const winners = outcomes.map((answers) => answers.filter((answer) => answer === 'won').length)
      expect(winners).toEqual(outcomes.map(() => 1))
      expect(new Set(outcomes.flat())).toEqual(new Set(['won', 'SESSION_IN_USE']))
      expect(namesIn(root)).toEqual([])
    },
  )

  test(
    'lets exactly one of many that race for a new lock have it',
    { timeout: 60_000 },
    async () => {
      const { root } = await folder()
      const racers = await Promise.all([1, 2, 3, 4].map(() => program('races-for-lock')))
      const file = join(root, 'one.jsonl')

      for (let round = 0; round < 50; round += 1) {
        const answers = await ask(racers, { file, at: Date.now() + 5 })
        expect(answers.filter((answer) => answer === 'won')).toHaveLength(1)
        await ask(racers, { at: 0 })
      }
    },
  )

  test('refuses a stale lock that another process is taking over', async () => {
    const { file, lock, table } = await folder()
    writeFileSync(lock, deadMark)
    const { pid } = await otherProcess(file.replace('.jsonl', '.other'))
    linkSync(`${file.replace('.jsonl', '.other')}.lock`, `${lock}.takeover`)

    expect(() => table.take(file)).toThrow(`by process ${pid}`)

    expect(readFileSync(lock, 'utf8')).toBe(deadMark)
  })

  test('gives back no lock that has become another one', async () => {
    const { file, lock, table } = await folder()
    const release = table.take(file)
    rmSync(lock)
    writeFileSync(lock, deadMark)

    release()

    expect(readFileSync(lock, 'utf8')).toBe(deadMark)
  })

  test('makes one file for all its locks, one after another too', async () => {
    const { root, file, lock, table } = await folder()
    const first = table.take(file)
    const { ino } = statSync(lock)
    first()

    const releases = [table.take(file), table.take(join(root, 'two.jsonl'))]

    expect(statSync(lock).ino).toBe(ino)
    expect(statSync(join(root, 'two.jsonl.lock')).ino).toBe(ino)
    for (const release of releases) release()
  })

  test('leaves nothing once it is retired and the last lock is given back', async () => {
    const { root, file, table } = await folder()
    const release = table.take(file)

    table.retire()
    const late = table.take(join(root, 'two.jsonl'))
    release()
    expect(readdirSync(join(root, '.writers'))).toHaveLength(1)
    late()

    expect(readdirSync(join(root, '.writers'))).toEqual([])
  })

  test('removes what processes left that were killed, and nothing of those that live', async () => {
    const { root, file, table } = await folder()
    const killed = await otherProcess(join(root, 'two.jsonl'))
    await otherProcess(join(root, 'three.jsonl'))
    await killed.kill()

    table.take(file)

    expect(readdirSync(join(root, '.writers'))).toHaveLength(2)
    expect(lockOwner(join(root, 'three.jsonl'))).toBeDefined()
  })

  test('takes a lock also when its folder was removed, or moved', async () => {
    const { root, file, table } = await folder()
    const release = table.take(file)
    rmSync(root, { recursive: true })

    const second = table.take(file)
    expect(lockOwner(file)).toBe(process.pid)
    renameSync(root, `${root}-2`)
    table.take(file)

    expect(lockOwner(file)).toBe(process.pid)
    expect(release).not.toThrow()
    expect(second).not.toThrow()
    rmSync(`${root}-2`, { recursive: true })
  })

  test('tells what is in the place of its folder', async () => {
    const { root } = await folder()
    writeFileSync(join(root, 'file'), '')

    expect(() => new LockTable(join(root, 'file')).take(join(root, 'file', 'one'))).toThrow(
      'ENOTDIR',
    )
  })

  test('gives its guard back when the takeover fails', async () => {
    const { root, lock, file, table } = await folder()
    mkdirSync(lock)

    expect(() => table.take(file)).toThrow('EISDIR')

    expect(namesIn(root)).toEqual(['one.jsonl.lock'])
  })
})
