import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context, Fiber } from '@deepseek-ai/cordis'
import { collectWarnings, temporaryFolder, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Conversation } from '../src/conversation.ts'
import { Config, type PoolLimits } from '../src/index.ts'
import { AgentPool } from '../src/pool.ts'
import { type Bench, childPids, createBench, fixture, isAlive, textOf } from './helpers.ts'

const hourMs = 3_600_000

interface PoolBench extends Bench {
  readonly folder: string
  /** The agents whose hands were shaken so far. */
  readonly pids: () => number[]
  /** Delegates; gives the agent that has answered. */
  readonly answerer: () => Promise<number>
}

/** Boots a backend with a pool, for agents that work in `folder`. */
async function createPoolBench(
  pool: Config['pool'],
  config: Partial<Config> = {},
): Promise<PoolBench> {
  const folder = await temporaryFolder()
  const bench = await createBench({ ...counted(folder), cwd: folder, pool, ...config })
  const answerer = async (): Promise<number> => Number(textOf(await bench.delegate()))
  return { ...bench, folder, pids: () => pidsIn(folder), answerer }
}

function counted(folder: string, ...args: string[]): ReturnType<typeof fixture> {
  return fixture('counted', join(folder, 'notes'), ...args)
}

function pidsIn(folder: string): number[] {
  const notes = join(folder, 'notes')
  const text = existsSync(notes) ? readFileSync(notes, 'utf8') : ''
  // The last line may not be whole.
  return Array.from(text.matchAll(/(\d+)\n/g), ([, pid]) => Number(pid))
}

function fiberOf(ctx: Context): Fiber {
  const entries = [...ctx.loader.entries()]
  const entry = entries.find(({ options }) => options.name === '@deepseek-ai/dsh-subagent-acp')
  if (entry?.fiber === undefined) throw new Error('the plugin is not loaded')
  return entry.fiber
}

const areReady = (bench: PoolBench, count: number): Promise<void> =>
  waitFor(`${count} agents are ready`, () => bench.pids().length === count)

describe('a pool', () => {
  test('has agents past the handshake, and gives each to exactly one run', async () => {
    const bench = await createPoolBench({ warm: 2, idleMs: hourMs })
    await areReady(bench, 2)
    const ready = bench.pids()

    const first = await bench.answerer()
    await areReady(bench, 3)
    const others = [await bench.answerer(), await bench.answerer()]

    expect(ready).toContain(first)
    expect(new Set([first, ...others]).size).toBe(3)
    expect(bench.pids()).toEqual(expect.arrayContaining(others))
    expect([first, ...others].filter(isAlive)).toEqual([])
  })

  test('without a folder in the config is filled by the first run, which starts its own', async () => {
    const bench = await createPoolBench({ warm: 1, idleMs: hourMs }, { cwd: undefined })
    const before = bench.pids()

    const first = await bench.answerer()
    await areReady(bench, 2)
    const second = await bench.answerer()

    expect(before).toEqual([])
    expect([first, second]).toEqual(bench.pids().slice(0, 2))
  })

  test('leaves an agent to runs in the folder where its process works', async () => {
    const bench = await createPoolBench({ warm: 1, idleMs: hourMs }, { cwd: undefined })
    await bench.answerer()
    await areReady(bench, 2)
    const { agent: parent } = bench.ctx.agents.create({ cwd: await temporaryFolder() })

    const elsewhere = Number(textOf(await bench.delegate('go', { parent })))
    const here = await bench.answerer()

    expect(elsewhere).not.toBe(bench.pids()[1])
    expect(here).toBe(bench.pids()[1])
  })

  test('serves of several runs at once as many as wait, and the others start their own', async () => {
    const bench = await createPoolBench({ warm: 2, idleMs: hourMs })
    await areReady(bench, 2)
    const ready = bench.pids()

    const answerers = await Promise.all([bench.answerer(), bench.answerer(), bench.answerer()])

    expect(new Set(answerers).size).toBe(3)
    expect(answerers).toEqual(expect.arrayContaining(ready))
  })

  test('answers the permissions that an agent asks for in its run by the policy', async () => {
    const config = {
      ...fixture('asks'),
      cwd: await temporaryFolder(),
      pool: { warm: 1, idleMs: hourMs },
    }
    const { delegate } = await createBench({ ...config, permission: 'allow' })
    const options = [{ optionId: 'yes', kind: 'allow_once', name: 'Yes' }]
    const asked = { sessionId: 's', toolCall: { toolCallId: 'c' }, options }

    const result = await delegate(JSON.stringify([['session/request_permission', asked]]))

    expect(textOf(result)).toContain('"optionId":"yes"')
  })

  test('ends an agent that nobody needs, and starts no other until a run asks', async () => {
    const bench = await createPoolBench({ warm: 1, idleMs: 500 })
    await areReady(bench, 1)

    await waitFor('it is gone', () => childPids().length === 0)
    const left = bench.pids()
    await bench.answerer()
    await areReady(bench, 3)

    expect(left).toHaveLength(1)
  })

  test('replaces an agent that dies while it waits, a second later', async () => {
    const bench = await createPoolBench({ warm: 1, idleMs: hourMs })
    const warnings = collectWarnings(bench.ctx)
    await areReady(bench, 1)
    const begin = performance.now()

    process.kill(bench.pids()[0]!, 'SIGKILL')
    await areReady(bench, 2)

    expect(performance.now() - begin).toBeGreaterThan(990)
    expect(warnings).toEqual([expect.stringMatching(/^an agent that was started ahead is lost: /)])
    expect(await bench.answerer()).toBe(bench.pids()[1])
  })

  test('gives no dead agent to a run, not even one that dies as it is taken', async () => {
    const bench = await createPoolBench({ warm: 1, idleMs: hourMs })
    await areReady(bench, 1)
    const [dead = 0] = bench.pids()

    process.kill(dead, 'SIGKILL')
    const answerer = await bench.answerer()

    expect(bench.pids()).toContain(answerer)
    expect(answerer).not.toBe(dead)
  })

  test('tells why agents that are started ahead fail, and lets runs fail for themselves', async () => {
    const folder = await temporaryFolder()
    const config = { ...counted(folder, 'dies'), cwd: folder, pool: { warm: 1, idleMs: hourMs } }
    const bench = await createBench(config)
    const warnings = collectWarnings(bench.ctx)
    // The first one may be lost before anybody listens: another is tried.
    await waitFor('one is lost', () => warnings.length > 0)

    const { stopReason, diagnostic } = await bench.delegate()

    expect(warnings[0]).toMatch(
      /^an agent that was started ahead is lost: the agent ".*" exited with code 3 at initialize/,
    )
    expect(stopReason).toBe('error')
    expect(diagnostic).toContain('exited with code 3 at initialize')
  })
})

describe('nothing of a pool is left', () => {
  test('when the plugin is unloaded, while a run goes on with the agent that it took', async () => {
    const bench = await createPoolBench({ warm: 2, idleMs: hourMs })
    await areReady(bench, 2)
    const run = bench.start()
    const taken = Number(textOf(await run.result))
    await areReady(bench, 3)

    await fiberOf(bench.ctx).dispose()

    expect(bench.pids().filter(isAlive)).toEqual([taken])
    await run.dispose()
    expect(childPids()).toEqual([])
  })

  test('when it is unloaded while agents are being started', async () => {
    const bench = await createPoolBench({ warm: 4, idleMs: hourMs })

    await fiberOf(bench.ctx).dispose()

    expect(childPids()).toEqual([])
  })

  test('but what the last of ten reloads has started', async () => {
    const bench = await createPoolBench({ warm: 1, idleMs: hourMs })
    for (let reload = 0; reload < 10; reload += 1) await fiberOf(bench.ctx).restart()
    await waitFor('one is ready', () => bench.pids().some(isAlive))

    // Beside each agent waits its guard.
    expect(childPids()).toHaveLength(2)
    await bench.answerer()
  })

  test.each(['exits', 'is killed'])('within 10 s when the host %s', async (how) => {
    const folder = await temporaryFolder()
    const program = fileURLToPath(new URL('fixtures/pool-host.ts', import.meta.url))
    const config = { ...counted(folder, 'hardy'), pool: { warm: 2, idleMs: hourMs } }
    const host = spawn(process.execPath, [program, folder, JSON.stringify(config)])
    onTestFinished(() => void host.kill('SIGKILL'))
    await waitFor('two are ready', () => pidsIn(folder).length === 2)
    const aliveBefore = pidsIn(folder).filter(isAlive)

    if (how === 'exits') host.stdin.write('\n')
    else host.kill('SIGKILL')
    await once(host, 'exit')

    await waitFor('all are gone', () => !pidsIn(folder).some(isAlive), 10_000)
    expect(aliveBefore).toEqual(pidsIn(folder))
  })
})

/** A pool whose agents only seem to be, on a clock that the test moves. */
function createPool(
  limits: PoolLimits,
  initialize: () => Promise<void>,
  ended: Promise<void> = new Promise(() => {}),
) {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const counts = { starts: 0, stops: 0 }
  const agent = {
    initialize,
    process: { ended, describe: (reason: string) => reason },
    stop: async () => void (counts.stops += 1),
  } as unknown as Conversation
  const warnings: string[] = []
  const start = (): Conversation => {
    counts.starts += 1
    return agent
  }
  const pool = new AgentPool({ ...limits, start, warn: (message) => warnings.push(message) })
  return { pool, warnings, counts }
}

const dying = (): Promise<void> => Promise.reject(new Error('no'))

describe('AgentPool', () => {
  test('tries agents that cannot start less and less often, and gives up', async () => {
    const limits = { warm: 3, idleMs: 60_000 }
    const { pool, warnings, counts } = createPool(limits, dying)

    pool.fill('/')
    await vi.advanceTimersByTimeAsync(24 * hourMs)

    // At once, then after 1, 2, 4, 8, 16 and 32 s.
    expect(counts).toEqual({ starts: 21, stops: 21 })
    expect(new Set(warnings)).toEqual(new Set(['an agent that was started ahead is lost: no']))
  })

  test('tells of an agent that ends by itself', async () => {
    const limits = { warm: 1, idleMs: 500 }
    const { pool, warnings, counts } = createPool(limits, async () => {}, Promise.resolve())

    pool.fill('/')
    await vi.advanceTimersByTimeAsync(1)

    expect(warnings).toEqual([
      'an agent that was started ahead is lost: it ended while it waited for a run',
    ])
    expect(counts).toEqual({ starts: 1, stops: 1 })
  })

  test('starts nothing for a host that is idle', async () => {
    const { pool, counts } = createPool({ warm: 2, idleMs: 1000 }, async () => {})

    pool.fill('/')
    await vi.advanceTimersByTimeAsync(24 * hourMs)

    expect(counts).toEqual({ starts: 2, stops: 2 })
    expect(pool.take('/')).toBeUndefined()
  })

  test.each([
    ['live', async () => {}],
    ['die', dying],
  ])('starts nothing any more once it is disposed, when its agents %s', async (_, initialize) => {
    const { pool, counts } = createPool({ warm: 1, idleMs: hourMs }, initialize)
    pool.fill('/')
    await vi.advanceTimersByTimeAsync(500)

    await pool.dispose()
    pool.fill('/')
    await vi.advanceTimersByTimeAsync(hourMs)

    expect(counts).toEqual({ starts: 1, stops: 1 })
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('the config key pool', () => {
  test('is absent when it is omitted, and has defaults when it is empty', () => {
    expect(Config({ command: 'agent' }).pool).toBeUndefined()
    expect(Config({ command: 'agent', pool: {} as never }).pool).toEqual({
      warm: 1,
      idleMs: 300_000,
    })
  })

  test.each<[object, string]>([
    [{ warm: 0 }, '$.pool.warm expected number >= 1 but got 0'],
    [{ warm: 17 }, '$.pool.warm expected number <= 16 but got 17'],
    [{ warm: 1.5 }, '$.pool.warm expected number multiple of 1 but got 1.5'],
    [{ idleMs: 0 }, '$.pool.idleMs expected number >= 1 but got 0'],
    [{ idleMs: 3_600_001 }, '$.pool.idleMs expected number <= 3600000 but got 3600001'],
  ])('refuses %j, and names the key', (pool, message) => {
    expect(() => Config({ command: 'agent', pool: pool as never })).toThrow(message)
  })
})
