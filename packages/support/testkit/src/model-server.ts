/** A real HTTP server on loopback that speaks as the model APIs do and says what a test wrote. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type JsonObject, messageOf } from '@deepseek-ai/dsh-llm'
import { onTestFinished } from 'vitest'
import { chatProtocol } from './model-server/chat.ts'
import { googleProtocol } from './model-server/google.ts'
import { messagesProtocol } from './model-server/messages.ts'
import { responsesProtocol } from './model-server/responses.ts'
import { sendJson, sendReply } from './model-server/send.ts'
import type {
  ReceivedRequest,
  ServedAnswer,
  ServedReply,
  WireProtocol,
} from './model-server/types.ts'

export type {
  ReceivedMessage,
  ReceivedRequest,
  ServedAnswer,
  ServedCall,
  ServedFault,
  ServedReply,
} from './model-server/types.ts'

export interface ModelServerOptions {
  /** Leaves the server open for a use outside of a test: the caller closes it. */
  readonly isManual?: boolean
}

/** A running server. */
export interface ModelServer {
  /** For example `http://127.0.0.1:40123`. */
  readonly url: string
  /** What a client of any of the protocols takes as its base: `<url>/v1`. */
  readonly baseURL: string
  /** Every request so far; the entries are live. */
  readonly requests: readonly ReceivedRequest[]
  /** How many connections are open right now. */
  openConnections(): number
  /** How many connections there have been. */
  allConnections(): number
  /** Lets every reply that stalls, now or later, go on to its end. */
  release(): void
  /** Cuts all connections and stops listening; calling it twice is harmless. */
  close(): Promise<void>
}

const protocols = [chatProtocol, responsesProtocol, messagesProtocol, googleProtocol]

/**
 * Starts a server that streams answers at `/v1/chat/completions`, `/v1/responses`, `/v1/messages`
 * and `/v1/models/<model>:streamGenerateContent`. It is closed after the test.
 * A list answers in order; a request past its end, or on which `answer` throws, gets status 400.
 */
export async function startModelServer(
  answer: ServedAnswer | readonly (string | ServedReply)[],
  { isManual = false }: ModelServerOptions = {},
): Promise<ModelServer> {
  const requests: ReceivedRequest[] = []
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const server = createServer((incoming, response) => {
    serve({ incoming, response, requests, answer, released }).catch(() => response.destroy())
  })
  let accepted = 0
  let open = 0
  server.on('connection', (socket) => {
    accepted += 1
    open += 1
    socket.once('close', () => (open -= 1))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => void server.close(() => resolve()))
  }
  if (!isManual) onTestFinished(close)
  return {
    url,
    baseURL: `${url}/v1`,
    requests,
    openConnections: () => open,
    allConnections: () => accepted,
    release,
    close,
  }
}

interface Exchange {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly requests: ReceivedRequest[]
  readonly answer: ServedAnswer | readonly (string | ServedReply)[]
  readonly released: Promise<void>
}

async function serve(exchange: Exchange): Promise<void> {
  const { incoming, response, answer, released } = exchange
  const path = new URL(incoming.url ?? '/', 'http://loopback').pathname
  const protocol = protocols.find((candidate) => candidate.serves(path))
  if (incoming.method !== 'POST' || protocol === undefined) {
    return sendJson(response, 404, { error: { message: `nothing is served at ${path}` } })
  }
  const request = await receive(exchange, path, protocol)
  const reply = await replyTo(request, answer)
  await sendReply({ response, protocol, released }, request, reply)
}

async function receive(
  { incoming, response, requests }: Exchange,
  path: string,
  protocol: WireProtocol,
): Promise<ReceivedRequest> {
  const body = JSON.parse(await text(incoming)) as JsonObject
  const request: ReceivedRequest = {
    index: requests.length,
    method: incoming.method ?? '',
    path,
    headers: incoming.headers,
    body,
    ...protocol.read(body, path),
    get isAbandoned() {
      return response.closed && !response.writableFinished
    },
  }
  requests.push(request)
  return request
}

async function replyTo(
  request: ReceivedRequest,
  answer: ServedAnswer | readonly (string | ServedReply)[],
): Promise<ServedReply> {
  try {
    const reply = typeof answer === 'function' ? await answer(request) : answer[request.index]
    if (reply === undefined) throw new Error(`no reply is scripted for request ${request.index}`)
    return typeof reply === 'string' ? { text: reply } : reply
  } catch (error) {
    return { fault: { status: 400, message: messageOf(error) } }
  }
}
