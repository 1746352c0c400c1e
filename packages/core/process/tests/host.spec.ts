import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, onTestFinished, test } from 'vitest'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { cleanEnvironment } from '../src/index.ts'
import { fixture, isAlive, pidsOf, start, startFixture } from './helpers.ts'

/** Starts a host, and not under care: nothing may end its tree but the host and its guard. */
function startHost(...args: string[]): ChildProcessWithoutNullStreams {
  const host = spawn(process.execPath, [fixture('host'), ...args], { env: cleanEnvironment() })
  onTestFinished(() => void host.kill('SIGKILL'))
  host.stderr.resume()
  return host
}

describe('a host with a child under care', () => {
  test.each([
    ['daemon', 'ignore', 3],
    ['daemon', 'pipe', 3],
    ['bare', 'ignore', 2],
  ])(
    'leaves nothing of a "%s" child, its stdin being "%s", when it is killed by SIGKILL',
    async (what, stdin, count) => {
      const host = startHost('wait', what, stdin)
      const pids = await pidsOf(host, count)
      expect(pids.filter(isAlive)).toEqual(pids)

      host.kill('SIGKILL')

      await waitFor('an empty tree', () => !pids.some(isAlive))
    },
    20_000,
  )

  test.each([
    ['exit', 0],
    ['throw', 1],
  ])('leaves nothing when it ends by "%s"', async (how, code) => {
    const host = startHost(how, 'daemon')
    const pids = await pidsOf(host, 3)

    host.stdin.end()

    expect(await once(host, 'exit')).toEqual([code, null])
    await waitFor('an empty tree', () => !pids.some(isAlive))
  })

  test('is itself ended with all its children by the host above', async () => {
    const inner = startFixture(['host', 'wait', 'daemon'])
    const pids = await pidsOf(inner, 3)

    expect(await inner.stop({ termGraceMs: 5000 })).toEqual([])

    expect(pids.filter(isAlive)).toEqual([])
  })

  test('installs one exit listener for all its children, and none without', async () => {
    const before = process.listenerCount('exit')
    const children = [1, 2, 3].map(() => start({ command: 'sleep', args: ['100'] }))

    const during = process.listenerCount('exit')
    await Promise.all(children.map((child) => child.stop({ termGraceMs: 1000 })))

    expect([during, process.listenerCount('exit')]).toEqual([before + 1, before])
  })
})
