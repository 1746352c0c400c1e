import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Config } from '../src/index.ts'
import { childPids, createBench, fixture, isAlive, textOf } from './helpers.ts'

const deaf = fixture('deaf')
/** The agent behind a program that hands on no signal, and lives on without it. */
const wrapped = (...args: string[]): Partial<Config> => {
  const { args: program } = fixture('deaf', ...args)
  return { command: 'sh', args: ['-c', '"$@"; true', 'sh', process.execPath, ...program] }
}
const quick = { disposeEofGraceMs: 100, disposeGraceMs: 100 }

/** Starts an agent that never ends, and waits until it has said which processes it consists of. */
async function startDeaf(config: Partial<Config>) {
  const bench = await createBench({ ...config, ...quick })
  const run = bench.start()
  await waitFor('the agent talks', () => bench.updates.length > 0)
  const pids = JSON.parse(readFileSync(join(bench.parent.cwd, 'pids.tmp'), 'utf8')) as number[]
  return { ...bench, run, pids }
}

describe('cancel', () => {
  test.each(['cancelled', 'end_turn'])(
    'is told to the agent, whose answer %s changes nothing; what it asks then is cancelled',
    async (stopReason) => {
      const folder = await temporaryFolder()
      const answer = join(folder, 'answer')
      const config = { ...fixture('cancels', answer, stopReason), permission: 'allow' as const }
      const { start, updates } = await createBench(config)
      const run = start()
      await waitFor('the agent talks', () => updates.length > 0)

      run.cancel()
      const result = await run.result
      await run.dispose()

      expect(result).toEqual({ output: [{ type: 'text', text: 'hello' }], stopReason: 'aborted' })
      expect(JSON.parse(readFileSync(answer, 'utf8'))).toEqual({
        outcome: { outcome: 'cancelled' },
      })
    },
  )

  test('that is ignored settles the result at once all the same', async () => {
    const { run, pids } = await startDeaf(deaf)

    run.cancel()
    const result = await run.result

    expect(result.stopReason).toBe('aborted')
    expect(pids.every(isAlive)).toBe(true)
    await run.dispose()
  })

  test('during the handshake sends no prompt', async () => {
    const notes = join(await temporaryFolder(), 'notes')
    const noted = (): string => (existsSync(notes) ? readFileSync(notes, 'utf8') : '')
    const { start } = await createBench(fixture('notes', notes))
    const run = start()

    run.cancel()
    const result = await run.result
    await waitFor('the session is opened', () => noted().includes('quiet'))
    await run.dispose()

    expect(result).toEqual({ output: [], stopReason: 'aborted' })
    expect(noted()).toBe('session/new\nquiet\n')
  })

  test('after the end, and again, changes nothing', async () => {
    const { start } = await createBench(fixture('plain'))
    const run = start()
    const result = await run.result

    run.cancel()
    await run.dispose()
    run.cancel()

    expect(result.stopReason).toBe('completed')
    expect(await run.result).toBe(result)
  })

  test('of one of two leaves the other alone', async () => {
    const { start, updates } = await createBench(fixture('silent', 'none'))
    const [one, other] = [start(), start()]

    one.cancel()

    expect((await one.result).stopReason).toBe('aborted')
    expect((await other.result).stopReason).toBe('completed')
    expect(updates).toHaveLength(1)
    await Promise.all([one.dispose(), other.dispose()])
  })

  test('before the start, by an aborted signal, starts no process', async () => {
    const { start } = await createBench(fixture('plain'))
    const before = childPids()

    const run = start('go', { signal: AbortSignal.abort() })

    expect(childPids()).toEqual(before)
    expect(await run.result).toEqual({ output: [], stopReason: 'aborted' })
    await run.dispose()
  })
})

describe('dispose', () => {
  test('lets an agent that ends by itself do so', async () => {
    const folder = await temporaryFolder()
    const script = `"${process.execPath}" ${fixture('plain').args.join(' ')}; touch ended`
    const { delegate } = await createBench({ command: 'sh', args: ['-c', script], cwd: folder })

    await delegate()

    expect(existsSync(join(folder, 'ended'))).toBe(true)
  })

  test.each([
    ['an agent that ignores all', deaf],
    ['a child that holds the pipes', fixture('deaf', 'holding')],
    ['a daemon in a session of its own', fixture('deaf', 'daemon')],
    ['an agent behind a program that hands on nothing', wrapped()],
    ['a daemon behind such a program', wrapped('daemon')],
  ])('settles when the whole tree is gone: %s', async (_name, config) => {
    const { run, pids } = await startDeaf(config)
    const aliveBefore = pids.filter(isAlive)

    await run.dispose()

    expect(aliveBefore).toEqual(pids)
    expect(pids.filter(isAlive)).toEqual([])
    expect(childPids().filter((pid) => pids.includes(pid))).toEqual([])
  })

  test('ends a silent agent in the time that the config gives', async () => {
    const { run, pids } = await startDeaf(deaf)
    const begin = performance.now()

    await run.dispose()

    // The cancel's grace, two graces of the config, and the kill.
    expect(performance.now() - begin).toBeGreaterThan(600)
    expect(pids.filter(isAlive)).toEqual([])
  })
})

describe('a host that is killed', () => {
  test.each([
    ['an agent that ignores all', deaf],
    ['a daemon in a session of its own', fixture('deaf', 'daemon')],
    ['a daemon behind a program that hands on nothing', wrapped('daemon')],
  ])('leaves nothing within 10 s: %s', async (_name, config) => {
    const folder = await temporaryFolder()
    const program = fileURLToPath(new URL('fixtures/host.ts', import.meta.url))
    const host = spawn(process.execPath, [program, folder, JSON.stringify(config)])
    onTestFinished(() => void host.kill('SIGKILL'))
    const notes = join(folder, 'pids.tmp')
    const pids = (): number[] => JSON.parse(readFileSync(notes, 'utf8') || '[]') as number[]
    await waitFor('the agent notes its processes', () => existsSync(notes) && pids().length > 0)
    const aliveBefore = pids().filter(isAlive)

    host.kill('SIGKILL')
    await once(host, 'exit')

    await waitFor('all are gone', () => !pids().some(isAlive), 10_000)
    expect(aliveBefore).toEqual(pids())
  })
})

describe('two runs at once', () => {
  test('have an agent each', async () => {
    const { delegate } = await createBench(fixture('tells'))

    const [one, other] = await Promise.all([delegate('one'), delegate('other')])

    expect(textOf(one)).toContain('"prompt":[{"type":"text","text":"one"}]')
    expect(textOf(other)).toContain('"prompt":[{"type":"text","text":"other"}]')
  })
})
