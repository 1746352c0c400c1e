import { fork } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assertUnowned, lockOwner, LockTable } from '../src/lock.ts'

const holder = fileURLToPath(new URL('./fixtures/holds-lock.ts', import.meta.url))

async function folder(): Promise<{ root: string; file: string; lock: string }> {
  const root = await temporaryFolder()
  const file = join(root, 'one.jsonl')
  return { root, file, lock: `${file}.lock` }
}

/** Another process that holds the lock of a file. */
async function otherProcess(file: string) {
  const child = fork(holder, [file])
  const gone = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await gone
  })
  await once(child, 'message')
  return { pid: child.pid, kill: async () => (child.kill('SIGKILL'), void (await gone)) }
}

describe('LockTable', () => {
  test('names the process that holds a lock, until it is given back', async () => {
    const { root, file } = await folder()

    const release = new LockTable().take(file)

    expect(lockOwner(file)).toBe(process.pid)
    expect(readdirSync(root)).toEqual(['one.jsonl.lock'])
    release()
    expect(lockOwner(file)).toBeUndefined()
    expect(readdirSync(root)).toEqual([])
    expect(release).not.toThrow()
  })

  test('refuses a file that another process writes, and names it', async () => {
    const { file } = await folder()
    const { pid } = await otherProcess(file)

    expect(() => new LockTable().take(file)).toThrow(
      expect.objectContaining({
        code: 'SESSION_IN_USE',
        message: `"${file}" is being written by process ${pid}: end it, or go on with another session`,
      }) as Error,
    )
    expect(() => assertUnowned(file)).toThrow(`by process ${pid}`)
  })

  test('refuses a file that another store of this process writes', async () => {
    const { file } = await folder()
    new LockTable().take(file)

    expect(() => new LockTable().take(file)).toThrow(`by process ${process.pid}`)
  })

  test('takes over the lock of a process that was killed', async () => {
    const { file } = await folder()
    const other = await otherProcess(file)

    await other.kill()
    expect(lockOwner(file)).toBeUndefined()
    new LockTable().take(file)

    expect(lockOwner(file)).toBe(process.pid)
  })

  test.each([
    ['of an earlier process with the same pid', `${process.pid} 1\n`],
    ['without a process', ''],
    ['with anything else in it', 'what?'],
    ['with a pid that no process can have', '-1 1\n'],
  ])('takes over a lock %s', async (_, text) => {
    const { file, lock } = await folder()
    writeFileSync(lock, text)

    expect(lockOwner(file)).toBeUndefined()
    new LockTable().take(file)

    expect(readFileSync(lock, 'utf8')).toMatch(new RegExp(`^${process.pid} \\d+\\n$`))
  })

  test('knows a process that belongs to somebody else as alive', async () => {
    const { file, lock } = await folder()
    writeFileSync(lock, '1 1\n')

    expect(lockOwner(file)).toBe(1)
  })

  test('links all its locks to one file', async () => {
    const { root, file, lock } = await folder()
    const table = new LockTable()

    const releases = [table.take(file), table.take(join(root, 'two.jsonl'))]

    expect(statSync(lock).ino).toBe(statSync(join(root, 'two.jsonl.lock')).ino)
    for (const release of releases) release()
    expect(readdirSync(root)).toEqual([])
  })

  test('takes a lock also when those that it holds were removed', async () => {
    const { root, file, lock } = await folder()
    const table = new LockTable()
    const release = table.take(file)
    rmSync(lock)

    table.take(join(root, 'two.jsonl'))

    expect(lockOwner(join(root, 'two.jsonl'))).toBe(process.pid)
    expect(release).not.toThrow()
  })

  test('refuses a lock that is there already, linked or not', async () => {
    const { root, file, lock } = await folder()
    const table = new LockTable()
    table.take(file)
    linkSync(lock, join(root, 'two.jsonl.lock'))

    expect(() => table.take(join(root, 'two.jsonl'))).toThrow(`by process ${process.pid}`)
  })

  test('leaves nothing behind where no lock can be made', async () => {
    const { root } = await folder()

    expect(() => new LockTable().take(join(root, 'missing', 'one.jsonl'))).toThrow('ENOENT')
    expect(existsSync(join(root, 'missing'))).toBe(false)
  })
})
