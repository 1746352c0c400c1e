import { getEventListeners } from 'node:events'
import { startModelServer } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { watchRequest } from '../src/watch.ts'

describe('watchRequest', () => {
  test('starts nothing when it is aborted already', async () => {
    const server = await startModelServer(['never'])
    const outer = AbortSignal.abort('enough')
    const watch = watchRequest(outer, 1000)

    const asked = watch.until(watch.fetch(server.url, { signal: watch.signal }))

    await expect(asked).rejects.toBe('enough')
    expect(server.allConnections()).toBe(0)
    expect(getEventListeners(outer, 'abort')).toEqual([])
  })

  test('ends work that stays silent, and says so', async () => {
    const watch = watchRequest(new AbortController().signal, 10)
    const silent = new Promise((_, reject) => {
      watch.signal.addEventListener('abort', () => reject(new Error('aborted')))
    })

    await expect(watch.until(silent)).rejects.toThrow('aborted')
    expect(watch.isSilent()).toBe(true)
    watch.dispose()
  })

  test('is not silent when the outer signal or its end aborts it', () => {
    const outer = new AbortController()
    const watch = watchRequest(outer.signal, 1000)
    const other = watchRequest(outer.signal, 1000)

    other.dispose()
    outer.abort()

    expect([watch.signal.aborted, other.signal.aborted]).toEqual([true, true])
    expect([watch.isSilent(), other.isSilent()]).toEqual([false, false])
    expect(getEventListeners(outer.signal, 'abort')).toEqual([])
  })
})
