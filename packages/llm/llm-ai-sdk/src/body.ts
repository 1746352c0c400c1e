/** Bounds what is read of an HTTP answer: whoever answers may be anything. */
import { UnreadableAnswerError } from './errors.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** How much of the body of a failure is read. */
const maxFailureBytes = 64 * 1024
/** The SDK reads a line into memory, again with each piece of it; a delta is one line. */
const maxLineBytes = 32 * 1024 * 1024
const newline = 0x0a

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
 * A stream of events, which fails at a line that is too long.
 * @throws UnreadableAnswerError for a page, or a single object, in place of a stream.
 */
export async function streamOf(response: Response, touch: () => void): Promise<Response> {
  const type = response.headers.get('content-type') ?? ''
  // Some servers name no type, or a wrong one: only what cannot be a stream is refused.
  if (/^\s*(text\/html|application\/json)\b/i.test(type))
    throw await noStream(response, type, touch)
  let size = 0
  return through(response, (chunk, controller) => {
    touch()
    const end = chunk.lastIndexOf(newline)
    size = end === -1 ? size + chunk.length : chunk.length - end
    if (size <= maxLineBytes) controller.enqueue(chunk)
    else controller.error(new UnreadableAnswerError(`a line of more than ${maxLineBytes} bytes`))
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
