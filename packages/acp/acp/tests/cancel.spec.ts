import { methods } from '@agentclientprotocol/sdk'
import { gate, scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { connect, startServer } from './helpers.ts'

const never = new Promise(() => {})
const { session } = methods.agent

describe('session/cancel', () => {
  test('ends the turn as cancelled, with what had been written', async () => {
    const server = await startServer({ models: [scriptedModel([{ text: 'one', until: never }])] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const turn = client.prompt(sessionId, 'hi')
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')

    await client.agent.notify(session.cancel, { sessionId })

    expect(await turn).toMatchObject({ stopReason: 'cancelled' })
  })

  test('ends one of two sessions and leaves the other alone', async () => {
    const held = gate()
    const model = scriptedModel(() => ({ text: 'one', until: held.opened }))
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const a = await client.open(server.folder)
    const b = await client.open(server.folder)
    const turns = [client.prompt(a, 'hi'), client.prompt(b, 'hi')]
    await waitFor('both run', () => client.textOf(a) === 'one' && client.textOf(b) === 'one')

    await client.agent.notify(session.cancel, { sessionId: a })
    const first = await turns[0]
    held.open()

    expect(first).toMatchObject({ stopReason: 'cancelled' })
    expect(await turns[1]).toMatchObject({ stopReason: 'end_turn' })
  })

  test('reaches the turn before a prompt that comes in one chunk with it', async () => {
    const model = scriptedModel([{ text: 'one', until: never }, 'two'])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const first = client.prompt(sessionId, 'first')
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')
    const frames = [
      { method: session.cancel, params: { sessionId } },
      {
        id: 'second',
        method: session.prompt,
        params: { sessionId, prompt: [{ type: 'text', text: 'second' }] },
      },
    ]

    server.stdin.write(
      frames.map((frame) => `${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`).join(''),
    )

    expect(await first).toMatchObject({ stopReason: 'cancelled' })
    const answer = (): { id?: unknown } | undefined =>
      server
        .lines()
        .map((line) => JSON.parse(line) as { id?: unknown })
        .find(({ id }) => id === 'second')
    await waitFor('the second is answered', () => answer() !== undefined)
    expect(answer()).toMatchObject({ result: { stopReason: 'end_turn' } })
  })

  test('lets a prompt that is sent while the cancelled turn ends run after it', async () => {
    const order: string[] = []
    const model = scriptedModel([{ text: 'one', until: never }, 'two'])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const first = client.prompt(sessionId, 'first').finally(() => order.push('first'))
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')

    const cancel = client.agent.notify(session.cancel, { sessionId })
    const second = client.prompt(sessionId, 'second').finally(() => order.push('second'))

    expect(await first).toMatchObject({ stopReason: 'cancelled' })
    expect(client.textOf(sessionId)).toBe('one')
    expect(await second).toMatchObject({ stopReason: 'end_turn' })
    expect(client.textOf(sessionId)).toBe('onetwo')
    expect(order).toEqual(['first', 'second'])
    await cancel
  })

  test('reaches a prompt that waits for the end of a cancelled turn', async () => {
    const model = scriptedModel([{ text: 'one', until: never }, 'never', 'three'])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const cancel = (): Promise<void> => client.agent.notify(session.cancel, { sessionId })
    const turns = [client.prompt(sessionId, 'first')]
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')

    void cancel()
    turns.push(client.prompt(sessionId, 'second'))
    void cancel()
    turns.push(client.prompt(sessionId, 'third'))

    const reasons = (await Promise.all(turns)).map(({ stopReason }) => stopReason)
    expect(reasons).toEqual(['cancelled', 'cancelled', 'end_turn'])
    expect(model.requests).toHaveLength(2)
  })

  test('tells what the turn has used, at once and with the answer', async () => {
    const usage = { inputTokens: 3, outputTokens: 4 }
    const model = scriptedModel([
      { calls: [{ name: 'nothing' }], usage },
      { text: 'two', until: never },
    ])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder, { 'dsh/depth': 1 })
    const turn = client.prompt(sessionId, 'hi')
    await waitFor('the second step runs', () => client.textOf(sessionId) === 'two')
    const told = client.updates(sessionId, 'usage_update').map(({ _meta: meta }) => meta)

    await client.agent.notify(session.cancel, { sessionId })

    expect(told).toEqual([{ 'dsh/usage': usage }])
    expect(await turn).toEqual({ stopReason: 'cancelled', usage })
  })

  test('is harmless twice, without a turn, and for nobody', async () => {
    const server = await startServer({ models: [scriptedModel(['ok'])] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)

    for (const id of [sessionId, sessionId, 'nobody']) {
      await client.agent.notify(session.cancel, { sessionId: id })
    }

    expect(await client.prompt(sessionId, 'hi')).toMatchObject({ stopReason: 'end_turn' })
  })
})

describe('$/cancel_request', () => {
  test('ends the turn of a prompt', async () => {
    const server = await startServer({ models: [scriptedModel([{ text: 'one', until: never }])] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const controller = new AbortController()
    const turn = client.agent.request(
      session.prompt,
      { sessionId, prompt: [{ type: 'text', text: 'hi' }] },
      { cancellationSignal: controller.signal },
    )
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')

    controller.abort()

    expect(await turn).toMatchObject({ stopReason: 'cancelled' })
  })
})

describe('$/cancel_request of a prompt', () => {
  test('that is cancelled already leaves the next one alone', async () => {
    const held = gate()
    const model = scriptedModel([
      { text: 'one', until: never },
      { text: 'two', until: held.opened },
    ])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const controller = new AbortController()
    const first = client.agent.request(
      session.prompt,
      { sessionId, prompt: [{ type: 'text', text: 'hi' }] },
      { cancellationSignal: controller.signal },
    )
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')

    void client.agent.notify(session.cancel, { sessionId })
    const second = client.prompt(sessionId, 'second')
    controller.abort()
    expect(await first).toMatchObject({ stopReason: 'cancelled' })
    await waitFor('the next turn runs', () => client.textOf(sessionId) === 'onetwo')
    held.open()

    expect(await second).toMatchObject({ stopReason: 'end_turn' })
  })
})

describe('session/close', () => {
  test('cancels the turn, and the agent is gone when it is answered', async () => {
    const server = await startServer({ models: [scriptedModel([{ text: 'one', until: never }])] })
    const client = await connect(server)
    const kept = await client.open(server.folder)
    const sessionId = await client.open(server.folder)
    const turn = client.prompt(sessionId, 'hi')
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')

    await client.agent.request(session.close, { sessionId })

    expect(server.ctx.agents.list().map(({ id }) => id)).toEqual([kept])
    expect(await turn).toMatchObject({ stopReason: 'cancelled' })
  })
})
