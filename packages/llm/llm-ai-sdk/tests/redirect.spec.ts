import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { apiKey, ask, bootAdapter, everyProvider, modelNames } from './helpers.ts'

interface Answer {
  readonly status: number
  readonly location?: string
}

/** Answers every request alike; what it was sent is all that `seen` holds. */
async function listen({ status, location }: Answer): Promise<{ port: number; seen: string[] }> {
  const seen: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      seen.push(`${JSON.stringify(request.headers)} ${body}`)
      response.writeHead(status, location === undefined ? {} : { location }).end('{}')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, seen }
}

describe.each([302, 307, 308])('a redirect by %i to another host', (status) => {
  test.each(everyProvider)('is not followed: %s', async (provider) => {
    const other = await listen({ status: 400 })
    const { port, seen } = await listen({ status, location: `http://localhost:${other.port}/` })
    const ctx = await bootAdapter(
      { baseURL: `http://127.0.0.1:${port}` },
      { provider, maxRetries: 0, headers: { 'x-gateway-token': 'gateway-secret' } },
    )

    const reply = await ask(ctx, { model: modelNames[provider] })

    expect(reply.finish).toBe('error')
    expect(JSON.stringify(reply)).not.toContain(apiKey)
    expect(seen).toHaveLength(1)
    expect(other.seen).toEqual([])
  })
})
