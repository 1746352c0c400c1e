import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Context } from '@deepseek-ai/cordis'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ProviderName } from '../src/index.ts'
import { apiKey, ask, bootAdapter, everyProvider, modelNames, type Reply } from './helpers.ts'

interface Peer {
  readonly baseURL: string
  /** Requests so far. */
  readonly requests: () => number
  readonly isOpen: () => boolean
}

/** A server that answers every request with what the test writes. */
async function listen(answer: (response: ServerResponse) => void): Promise<Peer> {
  let requests = 0
  let open = 0
  const server = createServer((_, response) => {
    requests += 1
    open += 1
    response.on('close', () => (open -= 1))
    answer(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const baseURL = `http://127.0.0.1:${port}`
  return { baseURL, requests: () => requests, isOpen: () => open > 0 }
}

/** Writes a piece; settles when it has left. */
function writePiece(response: ServerResponse, piece: string): Promise<void> {
  return new Promise((resolve) => void response.write(piece, () => resolve()))
}

/** Writes pieces until the reader has gone, or too much was taken, and counts their bytes. */
function writeForEver(
  response: ServerResponse,
  piece: string,
  sent: { bytes: number },
  most = Number.POSITIVE_INFINITY,
): void {
  const write = (): void => {
    if (response.closed || response.destroyed) return
    if (sent.bytes > most) return void response.end()
    sent.bytes += piece.length
    if (response.write(piece)) setImmediate(write)
    else response.once('drain', write)
  }
  write()
}

async function askOnce(
  { baseURL }: Pick<Peer, 'baseURL'>,
  provider: ProviderName,
  maxRetries = 0,
): Promise<Reply> {
  const ctx: Context = await bootAdapter({ baseURL }, { provider, maxRetries })
  return ask(ctx, { model: modelNames[provider] })
}

const stream = { 'content-type': 'text/event-stream' }

describe('the body of a failure', () => {
  test.each(everyProvider)('that goes on and on is cut off: %s', async (provider) => {
    const sent = { bytes: 0 }
    const peer = await listen((response) => {
      response.writeHead(400, { 'content-type': 'text/plain' })
      writeForEver(response, 'x'.repeat(64 * 1024), sent)
    })

    const reply = await askOnce(peer, provider)

    expect(reply.finish).toBe('error')
    await waitFor('the connection is closed', () => !peer.isOpen())
    // What the sockets hold comes on top of the 64 KiB that are read.
    expect(sent.bytes).toBeLessThan(20 * 1024 * 1024)
  })
})

describe('the body of an answer', () => {
  test.each(everyProvider)('whose line goes on and on is given up: %s', async (provider) => {
    const sent = { bytes: 0 }
    const peer = await listen((response) => {
      response.writeHead(200, stream).write('data: "')
      writeForEver(response, 'x'.repeat(64 * 1024), sent)
    })

    const { finish, error } = await askOnce(peer, provider, 2)

    expect(finish).toBe('error')
    expect(error).toMatchObject({ code: 'MODEL_FAILED' })
    expect(error?.message).toMatch(/an event of more than 33554432 bytes from http:.*"baseURL"/)
    await waitFor('the connection is closed', () => !peer.isOpen())
    expect(sent.bytes).toBeLessThan(80 * 1024 * 1024)
    expect(peer.requests()).toBe(1)
  })

  test.each(['\n', '\r\n'])('whose event goes on line after line is given up: %j', async (end) => {
    const sent = { bytes: 0 }
    const peer = await listen((response) => {
      response.writeHead(200, stream)
      writeForEver(response, `data: ${'x'.repeat(1024)}${end}`.repeat(64), sent, 256 * 1024 * 1024)
    })

    const { error } = await askOnce(peer, 'openai-compatible', 2)

    expect(error).toMatchObject({ code: 'MODEL_FAILED' })
    expect(error?.message).toContain('an event of more than 33554432 bytes')
    expect(peer.requests()).toBe(1)
  })

  test.each(['\n', '\r\n'])(
    'may be long when its events are not, also when their ends come in pieces: %j',
    async (end) => {
      const choice = { index: 0, delta: { content: '' }, finish_reason: null }
      const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, choices: [choice] }
      const event = `data: ${JSON.stringify({ ...chunk, pad: 'x'.repeat(1024 * 1024) })}`
      const last = { ...chunk, choices: [{ ...choice, finish_reason: 'stop' }] }
      const peer = await listen((response) => {
        response.writeHead(200, stream)
        void (async () => {
          for (let index = 0; index < 40; index += 1) {
            await writePiece(response, `${event}${end}`)
            await writePiece(response, end)
          }
          response.end(`data: ${JSON.stringify(last)}${end}${end}data: [DONE]${end}${end}`)
        })()
      })

      const { finish } = await askOnce(peer, 'openai-compatible')

      expect(finish).toBe('stop')
    },
  )

  test('that unpacks to a line without end is given up', async () => {
    const packed = gzipSync(`data: "${'x'.repeat(64 * 1024 * 1024)}`)
    const peer = await listen((response) => {
      response.writeHead(200, { ...stream, 'content-encoding': 'gzip' }).end(packed)
    })

    const { error } = await askOnce(peer, 'openai-compatible')

    expect(error?.message).toContain('an event of more than 33554432 bytes')
  })

  test('may have a line of ten megabytes', async () => {
    const text = 'x'.repeat(10 * 1024 * 1024)
    const peer = await listen((response) => {
      const choice = { index: 0, delta: { content: text }, finish_reason: 'stop' }
      const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, choices: [choice] }
      response.writeHead(200, stream)
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`)
    })

    const { content, finish } = await askOnce(peer, 'openai-compatible')

    expect(finish).toBe('stop')
    expect(content).toEqual([{ type: 'text', text }])
  })

  test.each(everyProvider)(
    'that is a page is told, and not asked for again: %s',
    async (provider) => {
      const peer = await listen((response) => {
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
        response.end('<html>Sign in</html>')
      })

      const { finish, error } = await askOnce(peer, provider, 2)

      expect(finish).toBe('error')
      expect(error).toMatchObject({ code: 'MODEL_FAILED' })
      expect(error?.message).toMatch(/"text\/html.*" in place of a stream.*http:.*check "baseURL"/)
      expect(peer.requests()).toBe(1)
    },
  )

  test.each(everyProvider)('that is JSON is told with what it says: %s', async (provider) => {
    const peer = await listen((response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message: `no credit for ${apiKey}` } }))
    })

    const { error } = await askOnce(peer, provider, 2)

    expect(error?.message).toMatch(
      /"application\/json" in place of a stream.*check "baseURL".*no credit for \*\*\*/,
    )
    expect(peer.requests()).toBe(1)
  })

  test('that is a stream under the type of JSON is read', async () => {
    const peer = await listen((response) => {
      const choice = { index: 0, delta: { content: 'hello' }, finish_reason: 'stop' }
      const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, choices: [choice] }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write(`data: ${JSON.stringify(chunk)}\n\n`)
      response.end('data: [DONE]\n\n')
    })

    const { content, finish } = await askOnce(peer, 'openai-compatible')

    expect(finish).toBe('stop')
    expect(content).toEqual([{ type: 'text', text: 'hello' }])
  })

  test.each<[ProviderName, string]>([
    ['deepseek', 'data: {"error":{"message":"it fell over","type":"odd","code":"odd"}}'],
    ['openai-compatible', 'data: {"error":{"message":"it fell over","type":"odd","code":"odd"}}'],
    ['openai-compatible', 'data: {"error":{"message":"it fell over"}}'],
    ['openai-compatible', 'data: {"error":"it fell over"}'],
    [
      'openai',
      'data: {"type":"error","sequence_number":1,"error":{"type":"odd","code":"odd","message":"it fell over","param":null}}',
    ],
    [
      'anthropic',
      'event: error\ndata: {"type":"error","error":{"type":"odd","message":"it fell over"}}',
    ],
    ['google', 'data: {"error":{"code":418,"message":"it fell over","status":"ODD"}}'],
  ])('with an error in its stream is told in its words: %s %s', async (provider, event) => {
    const peer = await listen((response) => {
      response.writeHead(200, stream).end(`${event}\n\n`)
    })

    const { finish, error } = await askOnce(peer, provider)

    expect(finish).toBe('error')
    expect(error?.message).toContain('it fell over')
    expect(error?.message).not.toMatch(/[{}[\]]/)
  })
})
