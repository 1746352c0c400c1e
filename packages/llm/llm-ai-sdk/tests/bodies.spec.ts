import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ask, bootAdapter, everyProvider, modelNames } from './helpers.ts'

describe('the body of a failure', () => {
  test.each(everyProvider)('that goes on and on is cut off: %s', async (provider) => {
    let isOpen = false
    let sent = 0
    const server = createServer((_, response) => {
      isOpen = true
      response.on('close', () => (isOpen = false))
      response.writeHead(400, { 'content-type': 'text/plain' })
      const piece = 'x'.repeat(64 * 1024)
      const write = (): void => {
        if (!isOpen) return
        sent += piece.length
        if (response.write(piece)) setImmediate(write)
        else response.once('drain', write)
      }
      write()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    const ctx = await bootAdapter(
      { baseURL: `http://127.0.0.1:${port}` },
      { provider, maxRetries: 0 },
    )

    const reply = await ask(ctx, { model: modelNames[provider] })

    expect(reply.finish).toBe('error')
    await waitFor('the connection is closed', () => !isOpen)
    // What the sockets hold comes on top of the 64 KiB that are read.
    expect(sent).toBeLessThan(20 * 1024 * 1024)
  })
})
