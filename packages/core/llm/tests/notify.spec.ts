import type { Context } from '@deepseek-ai/cordis'
import { collectErrors, testContext, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { createNotify } from '../src/index.ts'

declare module '@deepseek-ai/cordis' {
  interface Events {
    'test/fact'(payload: { readonly value: number }): void
  }
}

// cordis logs the cause of an error as an error of its own.
const expectErrors = /a listener of "test\/fact" failed|the listener/

function listenTo(ctx: Context): number[] {
  const heard: number[] = []
  ctx.on('test/fact', ({ value }) => void heard.push(value))
  return heard
}

describe('createNotify', () => {
  test('calls the listeners of every context in the order in which they were added', async () => {
    const ctx = testContext()
    const heard: string[] = []
    ctx.on('test/fact', () => void heard.push('root'))
    await ctx.plugin((child: Context) => {
      child.on('test/fact', () => void heard.push('plugin'))
    })

    createNotify(ctx)('test/fact', { value: 1 })

    expect(heard).toEqual(['root', 'plugin'])
  })

  test('does nothing when nobody listens', () => {
    const notify = createNotify(testContext())

    expect(() => notify('test/fact', { value: 1 })).not.toThrow()
  })

  test('logs a listener that throws, and calls the others', () => {
    const ctx = testContext({ expectErrors })
    const errors = collectErrors(ctx)
    ctx.on('test/fact', () => {
      throw new Error('the listener is broken')
    })
    const heard = listenTo(ctx)

    createNotify(ctx)('test/fact', { value: 1 })

    expect(heard).toEqual([1])
    expect(errors.at(-1)).toMatch(/"test\/fact".*the listener is broken/s)
  })

  test('logs a listener that rejects, and does not wait for it', async () => {
    const ctx = testContext({ expectErrors })
    const errors = collectErrors(ctx)
    ctx.on('test/fact', async () => {
      throw new Error('the listener rejects')
    })
    const heard = listenTo(ctx)

    createNotify(ctx)('test/fact', { value: 1 })

    expect(heard).toEqual([1])
    expect(errors).toEqual([])
    await waitFor('the rejection is logged', () => errors.length > 0)
    expect(errors.at(-1)).toMatch(/"test\/fact".*the listener rejects/s)
  })

  test('skips nobody when a listener removes itself', () => {
    const ctx = testContext()
    const once: number[] = []
    ctx.once('test/fact', ({ value }) => void once.push(value))
    const heard = listenTo(ctx)
    const notify = createNotify(ctx)

    notify('test/fact', { value: 1 })
    notify('test/fact', { value: 2 })

    expect(once).toEqual([1])
    expect(heard).toEqual([1, 2])
  })

  test('calls no listener of a plugin that was disposed', async () => {
    const ctx = testContext()
    let heard: number[] = []
    const fiber = await ctx.plugin((child: Context) => {
      heard = listenTo(child)
    })
    const notify = createNotify(ctx)
    notify('test/fact', { value: 1 })

    await fiber.dispose()
    notify('test/fact', { value: 2 })

    expect(heard).toEqual([1])
  })
})
