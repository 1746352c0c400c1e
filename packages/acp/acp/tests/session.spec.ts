import { getEventListeners } from 'node:events'
import { scriptedModel } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { AcpSession } from '../src/session.ts'
import { startServer } from './helpers.ts'

async function createSession(model = scriptedModel(() => 'ok')): Promise<AcpSession> {
  const { ctx, folder } = await startServer({ models: [model] })
  return new AcpSession({
    handle: ctx.agents.registry.create({ cwd: folder }),
    asks: new Set(),
    request: () => Promise.reject(new Error('nothing is requested')),
    send: () => Promise.resolve(),
    ask: () => Promise.reject(new Error('nobody is asked')),
    readText: () => Promise.resolve(undefined),
    tellsUsage: false,
  })
}

const hello = [{ type: 'text' as const, text: 'hello' }]

describe('AcpSession', () => {
  test('leaves no listener on the signals of its prompts, however they end', async () => {
    const { signal } = new AbortController()
    const never = new Promise(() => {})
    const session = await createSession(scriptedModel([{ text: 'one', until: never }, 'two']))

    const first = session.prompt(hello, signal)
    const refused = session.prompt(hello, signal)
    await expect(refused).rejects.toThrow('is busy')
    session.cancel()
    const second = session.prompt(hello, signal)
    expect(getEventListeners(signal, 'abort')).toHaveLength(2)

    expect(await Promise.all([first, second])).toMatchObject([
      { stopReason: 'cancelled' },
      { stopReason: 'end_turn' },
    ])
    expect(getEventListeners(signal, 'abort')).toEqual([])
    await session.dispose()
  })

  test('starts nothing for a prompt that is cancelled already', async () => {
    const model = scriptedModel([])
    const session = await createSession(model)

    const response = await session.prompt(hello, AbortSignal.abort())

    expect(response).toEqual({ stopReason: 'cancelled' })
    expect(session.agent.session.length).toBe(0)
    await session.dispose()
  })
})
