/** Completes what the scripted model says over the OpenAI responses protocol, for a client that is strict. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** Starts a proxy in front of a model server; it is closed after the test. @returns its address. */
export async function strictResponses(url: string): Promise<string> {
  const server = createServer((incoming, response) => {
    relay(url, incoming, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => void server.close(() => resolve()))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function relay(url: string, incoming: IncomingMessage, response: ServerResponse) {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  const { method = '', url: path = '' } = incoming
  const body = await text(incoming)
  const reply = await fetch(`${url}${path}`, {
    method,
    ...(method === 'POST' && { body }),
    signal: gone.signal,
  })
  response.writeHead(reply.status, { 'content-type': reply.headers.get('content-type') ?? '' })
  response.flushHeaders()
  let rest = ''
  for await (const piece of reply.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const events = `${rest}${piece}`.split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) response.write(`${event.replace(/(?<=^data: ).*$/m, complete)}\n\n`)
  }
  response.end(rest)
}

interface StreamEvent {
  readonly item?: { type?: string; role?: string; content?: unknown[] }
  readonly response?: {
    usage?: { input_tokens: number; output_tokens: number; total_tokens?: number }
  }
}

function complete(json: string): string {
  const event = JSON.parse(json) as StreamEvent
  const { item, response: { usage } = {} } = event
  if (item?.type === 'message') Object.assign(item, { role: 'assistant', content: [] })
  if (usage !== undefined) usage.total_tokens = usage.input_tokens + usage.output_tokens
  return JSON.stringify(event)
}
