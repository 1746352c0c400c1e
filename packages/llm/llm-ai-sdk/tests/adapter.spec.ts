import { getEventListeners, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { StreamChunk } from '@deepseek-ai/dsh-llm'
import { gate, type ServedReply, startModelServer, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  ask,
  bootAdapter,
  collectWarnings,
  createRequest,
  everyProvider,
  modelNames,
  replyOf,
} from './helpers.ts'

describe.each(everyProvider)('an adapter of %s', (provider) => {
  const model = modelNames[provider]

  test.each<[string, ServedReply]>([
    ['429', { fault: { status: 429, headers: { 'retry-after': '0' } } }],
    ['500', { fault: { status: 500 } }],
    ['529', { fault: { status: 529 } }],
    ['a connection that is cut before the headers', { fault: fault('disconnect', 'nothing') }],
    ['a connection that is cut before the first chunk', { fault: fault('disconnect', 'headers') }],
    ['a stream that ends before the first chunk', { fault: fault('end', 'headers') }],
    ['an overload told as the first event', { fault: fault('error', 'headers') }],
  ])('tries again after %s', async (_, first) => {
    const server = await startModelServer([first, 'hello'])
    const ctx = await bootAdapter(server, { provider })

    const reply = await ask(ctx, { model })

    expect(reply).toMatchObject({ content: [{ type: 'text', text: 'hello' }], finish: 'stop' })
    expect(server.requests).toHaveLength(2)
    expect(server.requests[1]?.body).toEqual(server.requests[0]?.body)
  })

  test('gives up on a rate limit after its retries', async () => {
    const server = await startModelServer(() => ({ fault: { status: 429, message: 'slow down' } }))
    const ctx = await bootAdapter(server, { provider })

    const { finish, error } = await ask(ctx, { model })

    expect(finish).toBe('error')
    expect(error?.code).toBe('MODEL_RATE_LIMIT')
    expect(error?.message).toContain('slow down (after 2 retries)')
    expect(server.requests).toHaveLength(3)
  })

  test('gives up on a server that fails after its retries', async () => {
    const server = await startModelServer(() => ({ fault: { status: 503 } }))
    const ctx = await bootAdapter(server, { provider, maxRetries: 1 })

    const { error } = await ask(ctx, { model })

    expect(error?.code).toBe('MODEL_UNAVAILABLE')
    expect(server.requests).toHaveLength(2)
  })

  test('does not try again after a refusal of the request', async () => {
    const server = await startModelServer(() => ({
      fault: { status: 400, message: 'no such tool' },
    }))
    const ctx = await bootAdapter(server, { provider })

    const { error } = await ask(ctx, { model })

    expect(error?.code).toBe('MODEL_REQUEST')
    expect(error?.message).toContain('no such tool')
    expect(server.requests).toHaveLength(1)
  })

  test.each(['disconnect', 'end', 'malformed', 'error'] as const)(
    'ends with an error, the text kept and nothing tried again, after a %s in mid-stream',
    async (kind) => {
      const server = await startModelServer([{ text: 'half a ', fault: { kind } }, 'never'])
      const ctx = await bootAdapter(server, { provider })

      const { content, finish, error } = await ask(ctx, { model })

      expect(content).toEqual([{ type: 'text', text: 'half a ' }])
      expect(finish).toBe('error')
      expect(error?.code).toBe(kind === 'malformed' ? 'MODEL_FAILED' : 'MODEL_UNAVAILABLE')
      expect(server.requests).toHaveLength(1)
    },
  )

  test.each(['nothing', 'headers', 'text'] as const)(
    'ends a stream that is silent after %s, and closes its connection',
    async (after) => {
      const server = await startModelServer([{ text: 'half', fault: { kind: 'stall', after } }])
      const ctx = await bootAdapter(server, { provider, idleTimeoutMs: 150 })

      const { error } = await ask(ctx, { model })

      expect(error?.code).toBe('MODEL_TIMEOUT')
      expect(error?.message).toContain(`"${model}" for 150 ms`)
      await waitFor('the server to see the end', () => server.requests[0]?.isAbandoned === true)
      expect(server.requests).toHaveLength(1)
    },
  )

  test.each(['nothing', 'headers', 'text'] as const)(
    'ends at once, and closes its connection, when aborted after %s',
    async (after) => {
      const server = await startModelServer([{ text: 'half', fault: { kind: 'stall', after } }])
      const ctx = await bootAdapter(server, { provider })
      const controller = new AbortController()
      const asked = ask(ctx, { model, signal: controller.signal })
      await waitFor('the request', () => server.requests.length === 1)

      controller.abort('enough')

      expect((await asked).finish).toBe('aborted')
      await waitFor('the server to see the end', () => server.requests[0]?.isAbandoned === true)
      await waitFor('no connection', () => server.openConnections() === 0)
    },
  )

  test('closes its connection when the caller stops reading', async () => {
    const server = await startModelServer([{ text: 'half', fault: { kind: 'stall' } }])
    const ctx = await bootAdapter(server, { provider })

    for await (const chunk of ctx.llm.registry.stream(createRequest({ model }))) {
      if (chunk.type === 'text-delta') break
    }

    await waitFor('no connection', () => server.openConnections() === 0)
    expect(server.requests).toMatchObject([{ isAbandoned: true }])
  })

  test('leaves neither listeners nor connections behind', async () => {
    const server = await startModelServer(() => ({ text: 'hello' }))
    const ctx = await bootAdapter(server, { provider })
    const { signal } = new AbortController()

    for (let count = 0; count < 20; count += 1) await ask(ctx, { model, signal })

    expect(getEventListeners(signal, 'abort')).toEqual([])
    // The next request may start while the last bytes of the one before are still on their way.
    expect(server.allConnections()).toBeLessThanOrEqual(2)
  })
})

describe('the retries', () => {
  test('end at once when aborted between two of them', async () => {
    const server = await startModelServer(() => ({
      fault: { status: 429, headers: { 'retry-after': '60' } },
    }))
    const ctx = await bootAdapter(server, {
      provider: 'openai-compatible',
      models: ['local-model'],
      retryMaxDelayMs: 60_000,
    })
    const warnings = collectWarnings(ctx)
    const controller = new AbortController()
    const asked = ask(ctx, { signal: controller.signal })
    await waitFor('the first retry', () => warnings.length === 1)

    controller.abort()

    expect((await asked).finish).toBe('aborted')
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
    expect(server.requests).toHaveLength(1)
  })

  test.each([
    ['as long as the server asks', { 'retry-after': '3' }, 1, 60_000, [3000, 3001]],
    [
      'as long as the server asks to the millisecond',
      { 'retry-after-ms': '1500' },
      1,
      60_000,
      [1500, 1501],
    ],
    ['no longer than the cap', { 'retry-after': '3600' }, 1, 2000, [2000, 2000]],
    ['from half the base to the base at first', {}, 1000, 60_000, [500, 1000]],
  ])('wait %s', async (_, headers, retryBaseDelayMs, retryMaxDelayMs, [least, most]) => {
    const server = await startModelServer(() => ({ fault: { status: 429, headers } }))
    const ctx = await bootAdapter(server, {
      provider: 'openai-compatible',
      models: ['local-model'],
      retryBaseDelayMs,
      retryMaxDelayMs,
    })
    const warnings = collectWarnings(ctx)
    const controller = new AbortController()
    const asked = ask(ctx, { signal: controller.signal })

    await waitFor('the first retry', () => warnings.length === 1)
    controller.abort()
    await asked

    const waitMs = Number(/retry 1 of 2 in (\d+) ms/.exec(warnings[0] ?? '')?.[1])
    expect(waitMs).toBeGreaterThanOrEqual(least ?? 0)
    expect(waitMs).toBeLessThanOrEqual(most ?? 0)
  })

  test('wait until the date that the server names', async () => {
    const date = new Date(Date.now() + 10_000).toUTCString()
    const server = await startModelServer(() => ({
      fault: { status: 503, headers: { 'retry-after': date } },
    }))
    const ctx = await bootAdapter(server, { provider: 'deepseek', retryMaxDelayMs: 60_000 })
    const warnings = collectWarnings(ctx)
    const controller = new AbortController()
    const asked = ask(ctx, { model: modelNames.deepseek, signal: controller.signal })

    await waitFor('the first retry', () => warnings.length === 1)
    controller.abort()
    await asked

    expect(Number(/in (\d+) ms/.exec(warnings[0] ?? '')?.[1])).toBeGreaterThan(7000)
  })

  test('leave out a quota that is spent', async () => {
    const body = { error: { message: 'pay first', type: 'insufficient_quota', code: null } }
    const server = await startModelServer(() => ({ fault: { status: 429, body } }))
    const ctx = await bootAdapter(server, { provider: 'openai' })

    const { error } = await ask(ctx, { model: modelNames.openai })

    expect(error?.code).toBe('MODEL_RATE_LIMIT')
    expect(server.requests).toHaveLength(1)
  })
})

describe('the idle timeout', () => {
  test('counts bytes that are no chunks as signs of life', async () => {
    const keptOpen = await startKeepAliveServer(30, 20)
    const ctx = await bootAdapter(keptOpen, {
      provider: 'openai-compatible',
      models: ['local-model'],
      idleTimeoutMs: 400,
    })

    const reply = await ask(ctx, {})

    expect(reply).toMatchObject({ content: [{ text: 'hello' }], finish: 'stop' })
  })

  test('leaves out the time that the caller takes', async () => {
    const second = gate()
    const server = await startModelServer([{ deltas: ['one', 'two'], until: second.opened }])
    const ctx = await bootAdapter(server, {
      provider: 'openai-compatible',
      models: ['local-model'],
      idleTimeoutMs: 300,
    })
    const chunks: StreamChunk[] = []

    for await (const chunk of ctx.llm.registry.stream(createRequest())) {
      chunks.push(chunk)
      if (chunks.length > 1) continue
      const until = performance.now() + 350
      await waitFor('more than the timeout', () => performance.now() > until)
      second.open()
    }

    expect(replyOf(chunks)).toMatchObject({ content: [{ text: 'onetwo' }], finish: 'stop' })
  })
})

function fault(kind: 'disconnect' | 'end' | 'error', after: 'nothing' | 'headers') {
  return { kind, after }
}

/** Sends comments, each after a pause, before a reply: as servers do that let requests queue. */
async function startKeepAliveServer(count: number, pauseMs: number): Promise<{ baseURL: string }> {
  const server = createServer((_, response) => {
    let sent = 0
    const timer = setInterval(() => {
      sent += 1
      if (sent < count) return void response.write(': keep-alive\n\n')
      clearInterval(timer)
      const choice = { index: 0, delta: { content: 'hello' }, finish_reason: 'stop' }
      response.end(`data: ${JSON.stringify({ choices: [choice] })}\n\n`)
    }, pauseMs)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    response.on('close', () => clearInterval(timer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
