/** Bounds what is read of an HTTP answer: whoever answers may be anything. */
import { UnreadableAnswerError } from './errors.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** How much of the body of a failure is read. */
const maxFailureBytes = 64 * 1024
/** The SDK holds an event in memory until the blank line at its end; a delta is one event. */
const maxEventBytes = 32 * 1024 * 1024

/** A failure, with as much of its body as a message can show. */
export function failureOf(response: Response, touch: () => void): Response {
  let size = 0
  return through(response, (chunk, controller) => {
    touch()
    controller.enqueue(chunk)
    size += chunk.length
    if (size > maxFailureBytes) controller.terminate()
  })
}

/**
 * A stream of events. It fails at one that is too long, and when it is a single object; some servers
 * name no type, or a wrong one.
 * @throws UnreadableAnswerError for a page.
 */
export async function streamOf(response: Response, touch: () => void): Promise<Response> {
  const type = response.headers.get('content-type') ?? ''
  if (/^\s*text\/html\b/i.test(type)) {
    await response.body?.cancel().catch(() => {})
    throw noStream(type)
  }
  const isJson = /^\s*application\/json\b/i.test(type)
  return isJson ? unlessObject(response, type, touch) : boundedEvents(response, touch)
}

/** What begins as JSON does is read as a failure is. */
async function unlessObject(
  response: Response,
  type: string,
  touch: () => void,
): Promise<Response> {
  const [peeked, kept] = response.body?.tee() ?? []
  const reader = peeked?.getReader()
  const { value } = (await reader?.read()) ?? {}
  void reader?.cancel().catch(() => {})
  const { status, headers } = response
  const whole = new Response(kept ?? null, { status, headers })
  if (value === undefined || !/^\s*[{[]/.test(Buffer.from(value).toString('latin1', 0, 64))) {
    return boundedEvents(whole, touch)
  }
  throw noStream(type, `: ${await failureOf(whole, touch).text()}`)
}

function boundedEvents(response: Response, touch: () => void): Response {
  let size = 0
  let tail = Buffer.alloc(0)
  return through(response, (chunk, controller) => {
    touch()
    // The end of an event may come in two pieces.
    const bytes = Buffer.concat([tail, chunk])
    const end = Math.max(bytes.lastIndexOf('\n\n'), bytes.lastIndexOf('\n\r\n'))
    size = end === -1 ? size + chunk.length : bytes.length - end
    tail = bytes.subarray(-2)
    if (size <= maxEventBytes) controller.enqueue(chunk)
    else controller.error(new UnreadableAnswerError(`an event of more than ${maxEventBytes} bytes`))
  })
}

function noStream(type: string, said = ''): UnreadableAnswerError {
  return new UnreadableAnswerError(`"${type.slice(0, 100)}" in place of a stream`, said)
}

function through(
  response: Response,
  transform: (chunk: Bytes, controller: TransformStreamDefaultController<Bytes>) => void,
): Response {
  if (response.body === null) return response
  const { status, statusText, headers } = response
  const body = response.body.pipeThrough(new TransformStream<Bytes, Bytes>({ transform }))
  return new Response(body, { status, statusText, headers })
}
