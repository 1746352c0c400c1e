/** Writing one reply, or what goes wrong instead. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { JsonObject } from '@deepseek-ai/dsh-llm'
import type {
  CompleteReply,
  ReceivedRequest,
  ServedFault,
  ServedReply,
  WireProtocol,
} from './types.ts'

type StatusFault = Extract<ServedFault, { status: number }>
type StreamFault = Exclude<ServedFault, StatusFault>

/** What a reply is written to, and how. */
export interface Outlet {
  readonly response: ServerResponse
  readonly protocol: WireProtocol
  /** Settles when stalled replies go on. */
  readonly released: Promise<void>
}

/** Writes a reply; settles when it is over, in whatever way. */
export async function sendReply(
  outlet: Outlet,
  request: ReceivedRequest,
  reply: ServedReply,
): Promise<void> {
  const { response, protocol } = outlet
  const { fault, until } = reply
  if (fault !== undefined && 'status' in fault) return sendStatus(outlet, fault)
  const complete = completeOf(request, reply)
  const gone = once(response, 'close')
  if (await failsAt('nothing', outlet, fault, gone)) return
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  if (await failsAt('headers', outlet, fault, gone)) return
  for (const event of protocol.head(complete)) response.write(event)
  if (await failsAt('text', outlet, fault, gone)) return
  if (until !== undefined) await Promise.race([until, gone])
  if (response.destroyed) return
  for (const event of protocol.tail(complete)) response.write(event)
  response.end()
}

/** Sends JSON with a status. */
export function sendJson(response: ServerResponse, status: number, body: JsonObject): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function sendStatus({ response, protocol }: Outlet, fault: StatusFault): void {
  const { status, message = `status ${status}`, body, headers = {} } = fault
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  if (typeof body === 'string') response.writeHead(status).end(body)
  else sendJson(response, status, (body ?? protocol.failure(status, message)) as JsonObject)
}

/** Goes wrong if this is the point to. @returns whether the reply is over with it. */
async function failsAt(
  point: NonNullable<StreamFault['after']>,
  { response, protocol, released }: Outlet,
  fault: StreamFault | undefined,
  gone: Promise<unknown>,
): Promise<boolean> {
  if (fault === undefined || (fault.after ?? 'text') !== point) return false
  switch (fault.kind) {
    case 'stall':
      await Promise.race([released, gone])
      return response.destroyed
    case 'disconnect':
      // What was written leaves first; then the connection ends in the middle of the body.
      response.socket?.end()
      break
    case 'end':
      response.end()
      break
    case 'malformed':
      response.end('data: {"choices": [\n\n')
      break
    case 'error':
      response.end(protocol.overload())
      break
  }
  return true
}

function completeOf({ index, model }: ReceivedRequest, reply: ServedReply): CompleteReply {
  const { reasoning, signature, text, deltas, calls = [], finish, usage } = reply
  return {
    id: `reply-${index}`,
    model,
    ...(reasoning !== undefined && { reasoning }),
    ...(signature !== undefined && { signature }),
    deltas: deltas ?? (text === undefined ? [] : [text]),
    calls: calls.map(({ name, input = {}, callId, signature: thought }, position) => ({
      name,
      callId: callId ?? `call-${index}-${position}`,
      input: typeof input === 'string' ? input : JSON.stringify(input),
      ...(thought !== undefined && { signature: thought }),
    })),
    finish: finish ?? (calls.length > 0 ? 'tool-calls' : 'stop'),
    usage: usage ?? { inputTokens: 10, outputTokens: 5 },
  }
}
