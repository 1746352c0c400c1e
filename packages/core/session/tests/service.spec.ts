import type { Context } from '@deepseek-ai/cordis'
import { bootYml, collectErrors, testContext } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import * as session from '../src/index.ts'
import SessionService, { SessionError } from '../src/index.ts'
import { appendTurn, createStore, typesOf } from './helpers.ts'

describe('SessionService', () => {
  test('keeps the log of a session that is loaded from a yml', async () => {
    const ctx = await bootYml(`- name: '@deepseek-ai/dsh-session'`)
    const heard: string[] = []
    ctx.on('session/event', ({ event }) => void heard.push(event.type))

    const log = ctx.sessions.prepare({ cwd: '/work' })
    log.append('turn/start', { turn: 1, model: 'model' })
    log.append('user/message', { content: [{ type: 'text', text: 'hello' }] })
    log.append('turn/end', { reason: 'completed' })

    expect(typesOf(log.events())).toEqual(['turn/start', 'user/message', 'turn/end'])
    expect(log.deriveMessages()).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'hello' }] },
    ])
    expect(heard).toEqual(['turn/start', 'user/message', 'turn/end'])
    expect(ctx.sessions.get(log.id)).toBe(log)
    expect(ctx.sessions.list()).toEqual([log])
  })

  test('is what the Loader takes from the module', async () => {
    const ctx = await bootYml('[]')

    expect(ctx.loader.unwrapExports(session)).toBe(SessionService)
  })

  test('commits an event whatever its listeners do', async () => {
    const ctx = testContext({ expectErrors: /listener/ })
    const errors = collectErrors(ctx)
    await ctx.plugin(SessionService)
    ctx.on('session/event', () => {
      throw new Error('a broken listener')
    })
    const heard: string[] = []
    ctx.on('session/event', ({ event }) => void heard.push(event.type))
    const log = ctx.sessions.prepare({ cwd: '/' })

    appendTurn(log, 'one')

    expect(log.length).toBe(6)
    expect(heard).toHaveLength(6)
    expect(errors).not.toEqual([])
  })

  test('lets go of a store when its plugin is disposed', async () => {
    const ctx = testContext()
    await ctx.plugin(SessionService)
    const store = createStore()
    const fiber = await ctx.inject(['sessions'], (child: Context) => {
      child.sessions.registerStore(store)
    })
    expect(() => ctx.sessions.registerStore(createStore())).toThrow(SessionError)

    await fiber.dispose()
    ctx.sessions.prepare({ cwd: '/' })

    expect(store.log).toEqual([])
    expect(() => ctx.sessions.registerStore(createStore())).not.toThrow()
  })
})
