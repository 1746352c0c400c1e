import { setImmediate } from 'node:timers/promises'
import type { Context } from '@deepseek-ai/cordis'
import type { SessionEventType } from '@deepseek-ai/dsh-session'
import { scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { connect, type Server, startServer } from './helpers.ts'

const never = new Promise(() => {})
const hello = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } }

describe('the wire', () => {
  test('drops a frame with an id that is none, and goes on', async () => {
    const server = await startServer({
      models: [scriptedModel(['ok'])],
      expectErrors: /dropped a frame/,
    })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const deep = '['.repeat(5000) + ']'.repeat(5000)

    server.stdin.write(`{"jsonrpc":"2.0","id":${deep},"method":"session/prompt","params":{}}\n`)

    expect(await client.prompt(sessionId, 'hi')).toMatchObject({ stopReason: 'end_turn' })
  })

  test('carries a whole conversation in plain frames', async () => {
    const server = await startServer({ models: [scriptedModel(['hello'])] })
    const peer = raw(server)

    await peer.ask(hello)
    const opened = await peer.ask({
      jsonrpc: '2.0',
      id: 'new',
      method: 'session/new',
      params: { cwd: server.folder, mcpServers: [] },
    })
    const { sessionId } = opened['result'] as { sessionId: string }
    const prompt = [{ type: 'text', text: 'hi' }]
    const answer = await peer.ask({
      jsonrpc: '2.0',
      id: 7,
      method: 'session/prompt',
      params: { sessionId, prompt },
    })

    expect(answer['result']).toMatchObject({ stopReason: 'end_turn' })
    const updates = server.lines().map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(updates.at(-2)).toEqual({
      jsonrpc: '2.0',
      method: 'session/update',
      params: {
        sessionId,
        update: {
          sessionUpdate: 'agent_message_chunk',
          messageId: expect.any(String),
          content: { type: 'text', text: 'hello' },
        },
      },
    })
  })

  test.each<[string, string, number]>([
    ['no JSON', 'hello', -32700],
    ['a broken frame', '{"jsonrpc":"2.0","id":1,', -32700],
    ['no frame', '{"hello":1}', -32600],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600],
    ['a number', '1', -32600],
    ['an unknown method', frame('session/dance', {}), -32601],
    ['a method for which there is no store', frame('session/load', {}), -32601],
    ['wrong parameters', frame('session/new', { cwd: 7 }), -32602],
    ['no parameters', frame('session/prompt'), -32602],
  ])('answers %s with an error and goes on', async (_, line, code) => {
    const server = await startServer({ models: [scriptedModel([])] })
    const peer = raw(server)
    await peer.ask(hello)

    server.stdin.write(`${line}\n`)

    const error = await peer.next((answer) => 'error' in answer)
    expect(error).toMatchObject({ error: { code } })
    expect(JSON.stringify(error)).not.toMatch(/\bat .*\.[jt]s/)
    expect(await peer.ask({ ...hello, id: 'again' })).toHaveProperty('result')
  })

  test('answers a request that comes before the handshake with an error', async () => {
    const server = await startServer({ models: [scriptedModel([])] })
    const peer = raw(server)

    const answer = await peer.ask({ jsonrpc: '2.0', id: 1, method: 'session/new', params: {} })

    expect(answer).toMatchObject({ error: { code: -32600 } })
  })

  test('takes split characters, CRLF and empty lines', async () => {
    const model = scriptedModel(['ok'])
    const server = await startServer({ models: [model] })
    const peer = raw(server)
    await peer.ask(hello)
    const params = { cwd: server.folder, mcpServers: [] }
    const opened = await peer.ask({ jsonrpc: '2.0', id: 'new', method: 'session/new', params })
    const { sessionId } = opened['result'] as { sessionId: string }
    const prompt = [{ type: 'text', text: 'é🎉' }]
    const bytes = Buffer.from(`\r\n\n${frame('session/prompt', { sessionId, prompt })}\r\n`)

    for (const byte of bytes) server.stdin.write(Buffer.from([byte]))

    expect(await peer.next(({ id }) => id === 1)).toHaveProperty('result')
    expect(model.requests[0]?.messages[0]?.content).toEqual([{ type: 'text', text: 'é🎉' }])
  })

  test('takes a prompt of ten million characters', async () => {
    const model = scriptedModel(['ok'])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const text = 'x'.repeat(10_000_000)

    const { stopReason } = await client.prompt(sessionId, text)

    expect(stopReason).toBe('end_turn')
    expect(model.requests[0]?.messages[0]?.content).toEqual([{ type: 'text', text }])
  })

  test('ends with code 1 on a line beyond all measure, and says why', async () => {
    const server = await startServer({
      models: [scriptedModel([{ text: 'one', until: never }])],
      expectErrors: /exceeds the configured 33554432 byte limit/,
    })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    client.prompt(sessionId, 'hi').catch(() => {})
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')

    for (let count = 0; count < 33; count += 1) server.stdin.write('x'.repeat(1_048_576))

    expect(await server.code).toBe(1)
    expect(server.ctx.agents.list()).toEqual([])
  })
})

describe('the end', () => {
  test('of stdin disposes every agent, in the middle of their turns, and gives 0', async () => {
    const server = await startServer({
      models: [scriptedModel(() => ({ text: 'one', until: never }))],
    })
    const client = await connect(server)
    const ids = [await client.open(server.folder), await client.open(server.folder)]
    for (const id of ids) client.prompt(id, 'hi').catch(() => {})
    await waitFor('both run', () => ids.every((id) => client.textOf(id) === 'one'))
    const ends: unknown[] = []
    server.ctx.on('session/event', ({ event }) => {
      if (event.type === 'turn/end') ends.push(event.data.reason)
    })

    server.stdin.end()

    expect(await server.code).toBe(0)
    expect(ends).toEqual(['aborted', 'aborted'])
    expect(server.ctx.agents.list()).toEqual([])
  })

  test('of stdin refuses the call whose question is open', async () => {
    let runs = 0
    const server = await startServer({
      models: [scriptedModel([{ calls: [{ name: 'count' }] }, 'never'])],
      config: { ask: ['count'] },
      prepare: (ctx) => counting(ctx, () => (runs += 1)),
    })
    const client = await connect(server, () => never as Promise<never>)
    const sessionId = await client.open(server.folder)
    client.prompt(sessionId, 'hi').catch(() => {})
    await waitFor('it asks', () => client.questions.length > 0)

    server.stdin.end()

    expect(await server.code).toBe(0)
    expect(runs).toBe(0)
  })

  test('of the command does the same', async () => {
    const server = await startServer({
      models: [scriptedModel(() => ({ text: 'one', until: never }))],
    })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    client.prompt(sessionId, 'hi').catch(() => {})
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')

    server.abort()

    expect(await server.code).toBe(0)
    expect(server.ctx.agents.list()).toEqual([])
  })

  test('comes with a reload of the plugin: the client must connect anew', async () => {
    const server = await startServer({
      models: [scriptedModel([{ text: 'one', until: never }])],
    })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    client.prompt(sessionId, 'hi').catch(() => {})
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')
    const entries = [...server.ctx.loader.entries()]
    const entry = entries.find(({ options }) => options.name === '@deepseek-ai/dsh-acp')

    await entry?.fiber?.restart()

    expect(await server.code).toBe(0)
    expect(server.ctx.agents.list()).toEqual([])
  })

  test('leaves no listener behind', async () => {
    const server = await startServer({ models: [scriptedModel([])] })
    const count = (): number =>
      Object.values(server.ctx.events._hooks).reduce((sum, hooks) => sum + (hooks?.length ?? 0), 0)
    await connect(server)
    const serving = count()

    server.stdin.end()
    await server.code

    expect(serving - count()).toBe(5)
  })
})

describe('a client that does not read', () => {
  test('stops the agent before its next call, and a cancel still reaches it', async () => {
    let runs = 0
    const server = await startServer({
      // Only the gate itself can end its waiting.
      core: { abortGraceMs: 60_000 },
      models: [
        scriptedModel([{ text: 'x'.repeat(1_000_000), calls: [{ name: 'count' }] }, 'never']),
      ],
      prepare: (ctx) => counting(ctx, () => (runs += 1)),
    })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const [agent] = server.ctx.agents.list()
    const called = eventOf(server, 'tool/call')
    server.stdout.removeAllListeners('data').pause()

    client.prompt(sessionId, 'hi').catch(() => {})
    await called
    for (let turn = 0; turn < 20; turn += 1) await setImmediate()
    const whileHeld = runs
    await client.agent.notify('session/cancel', { sessionId })
    await agent?.whenIdle()

    expect(whileHeld).toBe(0)
    expect(runs).toBe(0)
    expect(agent?.session.lastTurnEnd?.reason).toBe('aborted')
  })

  test('gets the response after all that belongs to the turn', async () => {
    const deltas = ['a', 'b', 'c'].map((letter) => letter.repeat(100_000))
    const server = await startServer({ models: [scriptedModel([{ deltas }])] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const [agent] = server.ctx.agents.list()
    const ended = eventOf(server, 'turn/end')
    server.stdout.removeAllListeners('data').pause()
    const prompt = [{ type: 'text', text: 'hi' }]
    server.stdin.write(`${frame('session/prompt', { sessionId, prompt }).replace('1', '"x"')}\n`)
    await ended
    await agent?.whenIdle()
    let text = ''

    server.stdout.on('data', (chunk: Buffer) => (text += chunk.toString())).resume()

    await waitFor('the response is there', () => text.includes('end_turn'))
    const frames = text.trim().split('\n')
    expect(frames.at(-1)).toContain('end_turn')
    expect(deltas.every((delta) => text.includes(delta))).toBe(true)
  })
})

describe('a request of the command line', () => {
  test.each([
    ['-p', { prompt: 'hi' }],
    ['--resume', { resume: 'x' as never }],
  ])('with %s is refused', async (option, request) => {
    const server = await startServer({ request })

    await expect(server.code).rejects.toMatchObject({
      code: 'UNSUPPORTED_REQUEST',
      message: expect.stringContaining(option),
    })
  })
})

describe('the config', () => {
  test('that asks for a tool which nobody has registered is refused', async () => {
    const server = await startServer({ config: { ask: ['bsah'] } })

    await expect(server.code).rejects.toMatchObject({
      code: 'UNKNOWN_TOOL',
      message: expect.stringContaining('"bsah"'),
    })
  })
})

type Frame = Record<string, unknown>

function frame(method: string, params?: unknown, isRequest = true): string {
  return JSON.stringify({ jsonrpc: '2.0', ...(isRequest && { id: 1 }), method, params })
}

/** A peer that knows nothing of the SDK. */
function raw({ stdin, lines }: Server): {
  ask: (request: Frame) => Promise<Frame>
  next: (isWanted: (frame: Frame) => boolean) => Promise<Frame>
} {
  const next = async (isWanted: (frame: Frame) => boolean): Promise<Frame> => {
    const find = (): Frame | undefined =>
      lines()
        .map((line) => JSON.parse(line) as Frame)
        .find(isWanted)
    await waitFor('the frame is there', () => find() !== undefined)
    return find() as Frame
  }
  const ask = (request: Frame): Promise<Frame> => {
    stdin.write(`${JSON.stringify(request)}\n`)
    return next(({ id }) => id === request['id'])
  }
  return { ask, next }
}

/** Settles at the first event of the type. */
function eventOf({ ctx }: Server, type: SessionEventType): Promise<void> {
  return new Promise((resolve) => {
    ctx.on('session/event', ({ event }) => {
      if (event.type === type) resolve()
    })
  })
}

/** Registers a tool that counts its runs. */
function counting(ctx: Context, count: () => number): void {
  ctx.tools.register({
    name: 'count',
    description: 'counts',
    parameters: z.object({}),
    execute: async () => String(count()),
  })
}
