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
 * A stream of events, which fails at one that is too long.
 * @throws UnreadableAnswerError for a page, or a single object, in place of a stream.
 */
export async function streamOf(response: Response, touch: () => void): Promise<Response> {
  const type = response.headers.get('content-type') ?? ''
  // Some servers name no type, or a wrong one: only what cannot be a stream is refused.
  if (/^\s*(text\/html|application\/json)\b/i.test(type))
    throw await noStream(response, type, touch)
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

async function noStream(
  response: Response,
  type: string,
  touch: () => void,
): Promise<UnreadableAnswerError> {
  const said = type.includes('json') ? `: ${await failureOf(response, touch).text()}` : ''
  // Closes the connection of a page; what was read to its end has nothing to close.
  await response.body?.cancel().catch(() => {})
  return new UnreadableAnswerError(`"${type}" in place of a stream`, said)
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
