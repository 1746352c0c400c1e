import type { Context } from '@deepseek-ai/cordis'
import type { Session, SessionEventType } from '@deepseek-ai/dsh-session'
import { bootYml, collectErrors } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test, vi } from 'vitest'
import * as invariants from '../src/index.ts'
import { calling, dataOf } from './helpers.ts'

const yml = `
- id: invariants
  name: '@deepseek-ai/dsh-invariants'
- name: '@deepseek-ai/dsh-session'
`

function append(session: Session, type: SessionEventType, data?: object): void {
  session.append(type, dataOf(type, data))
}

function appendTurn(session: Session): void {
  append(session, 'turn/start')
  append(session, 'user/message')
  append(session, 'step/start')
  append(session, 'assistant/message')
  append(session, 'step/end')
  append(session, 'turn/end')
}

function fiberOf(ctx: Context): Context['fiber'] {
  const entry = [...ctx.loader.entries()].find(({ options }) => options.id === 'invariants')
  if (entry?.fiber === undefined) throw new Error('invariants is not loaded')
  return entry.fiber
}

describe('invariants', () => {
  test('logs an error with session, event and problem, as soon as a log is broken', async () => {
    const ctx = await bootYml(yml, { expectErrors: /at seq/ })
    const errors = collectErrors(ctx)
    const session = ctx.sessions.prepare({ cwd: '/' })
    append(session, 'turn/start')

    append(session, 'tool/result')

    expect(errors).toEqual([
      `session "${session.id}", tool/result at seq 1: a result without an open call`,
    ])
  })

  test('is silent about sound logs, several at a time', async () => {
    const ctx = await bootYml(yml)
    const sessions = [ctx.sessions.prepare({ cwd: '/' }), ctx.sessions.prepare({ cwd: '/' })]

    for (const type of ['turn/start', 'user/message', 'turn/end'] as const) {
      for (const session of sessions) append(session, type)
    }

    expect(sessions.map(({ length }) => length)).toEqual([3, 3])
  })

  test('takes up a log that is live already, in the middle of a turn', async () => {
    const ctx = await bootYml(yml, { expectErrors: /at seq/ })
    const errors = collectErrors(ctx)
    const session = ctx.sessions.prepare({ cwd: '/' })
    append(session, 'turn/start')
    append(session, 'step/start')
    append(session, 'assistant/message', calling('a'))
    append(session, 'tool/call')

    await fiberOf(ctx).restart()
    append(session, 'tool/result')
    append(session, 'step/end')
    append(session, 'turn/end')
    const sound = [...errors]
    append(session, 'turn/end')

    expect(sound).toEqual([])
    expect(errors).toHaveLength(1)
  })

  test('passes a log that is resumed', async () => {
    const ctx = await bootYml(yml)
    const stored = ctx.sessions.prepare({ cwd: '/' })
    appendTurn(stored)
    await ctx.sessions.table.release(stored)

    const resumed = ctx.sessions.table.reopen({
      header: stored.header,
      events: [...stored.events()],
    })
    appendTurn(resumed)

    expect(invariants.violationsOf(resumed.events())).toEqual([])
  })

  test('passes a log that begins with a seed', async () => {
    const ctx = await bootYml(yml)
    const parent = ctx.sessions.prepare({ cwd: '/' })
    appendTurn(parent)

    const child = ctx.sessions.prepare({ cwd: '/', seed: parent.completedTurns()! })
    appendTurn(child)

    expect(invariants.violationsOf(child.events())).toEqual([])
  })

  test('reads no event of a log twice', async () => {
    const ctx = await bootYml(yml)
    const session = ctx.sessions.prepare({ cwd: '/' })
    const at = vi.spyOn(session, 'at')
    const events = vi.spyOn(session, 'events')

    for (let turn = 0; turn < 100; turn += 1) appendTurn(session)

    expect(at).not.toHaveBeenCalled()
    expect(events).not.toHaveBeenCalled()
  })

  test('keeps as many listeners over twenty reloads as after the first load', async () => {
    const ctx = await bootYml(yml)
    const counts = (): number[] =>
      ['session/created', 'session/event'].map((name) => ctx.events._hooks[name]?.length ?? 0)
    const before = counts()

    for (let reload = 0; reload < 20; reload += 1) await fiberOf(ctx).restart()

    expect(before).toEqual([1, 1])
    expect(counts()).toEqual(before)
  })

  test('is what the Loader takes from the module, with its needs', async () => {
    const ctx = await bootYml('[]')

    const plugin = ctx.loader.unwrapExports(invariants) as typeof invariants

    expect(plugin.name).toBe('invariants')
    expect(plugin.inject).toEqual(['sessions'])
    expect(plugin.apply).toBeInstanceOf(Function)
    expect(plugin).not.toHaveProperty('default')
  })
})
