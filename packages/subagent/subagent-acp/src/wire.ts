/** The messages of the protocol, picked out of what an agent writes to its stdout. */
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import type { ByteTail, CareProcess } from '@deepseek-ai/dsh-process'
import { AcpChildError } from './errors.ts'
import { paramsOfInterest } from './transcript.ts'

/** Of one message. Source: the default of the protocol's SDK. */
const maxMessageBytes = 32 * 1024 * 1024
const newline = 0x0a
const brace = 0x7b

/**
 * Makes a stream of messages of a process. The SDK would answer a banner with an error, which some
 * agents choke on, and would crash this process on a `result` that is null; so what is no message
 * goes into `noise`, and the SDK gets only what it is safe with.
 */
export function messageStream(child: CareProcess, noise: ByteTail): Stream {
  const pending = new Set<unknown>()
  // A process that got away may hold the output open for ever.
  void child.gone.then(() => child.stdout.destroy())
  return {
    readable: ReadableStream.from(messagesFrom(child.stdout, noise, pending)),
    writable: new WritableStream({
      write(message) {
        if ('method' in message && 'id' in message) pending.add(message.id)
        // Not awaited: a pipe that is full, or broken, shows in the process.
        child.stdin?.write(`${JSON.stringify(message)}\n`)
      },
    }),
  }
}

/** Cuts a stream of bytes into lines, in a time that is linear however small its pieces are. */
export class Lines {
  private readonly maxBytes: number
  private pieces: Uint8Array[] = []
  private size = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  /** The lines that a chunk completes, without their ends. @throws AcpChildError `AGENT_FAILED` when one is too long. */
  *push(chunk: Buffer): Generator<Buffer> {
    let begin = 0
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, begin)) {
      this.add(chunk.subarray(begin, end))
      yield this.take()
      begin = end + 1
    }
    this.add(chunk.subarray(begin))
  }

  /** What came after the last line end. */
  take(): Buffer {
    const { pieces } = this
    this.pieces = []
    this.size = 0
    return Buffer.concat(pieces)
  }

  private add(piece: Uint8Array): void {
    this.pieces.push(piece)
    this.size += piece.length
    if (this.size <= this.maxBytes) return
    this.take()
    throw new AcpChildError(
      'AGENT_FAILED',
      `the agent wrote a line of more than ${this.maxBytes} bytes`,
    )
  }
}

async function* messagesFrom(
  stdout: AsyncIterable<Buffer>,
  noise: ByteTail,
  pending: Set<unknown>,
): AsyncGenerator<AnyMessage> {
  const lines = new Lines(maxMessageBytes)
  const messageIn = (line: Buffer): AnyMessage | undefined => {
    const message = readMessage(line, noise)
    return message && accept(message, pending)
  }
  try {
    for await (const chunk of stdout) {
      for (const line of lines.push(chunk)) {
        const message = messageIn(line)
        if (message !== undefined) yield message
      }
    }
  } catch (error) {
    if (error instanceof AcpChildError) throw error
    // A stream that breaks off has ended; the process tells why.
  }
  const message = messageIn(lines.take())
  if (message !== undefined) yield message
}

/** The message that a line ends with: a banner may precede it. */
function readMessage(line: Buffer, noise: ByteTail): object | undefined {
  const begin = line.indexOf(brace)
  const message = begin === -1 ? undefined : parse(line.toString('utf8', begin))
  const rest = message === undefined ? line : line.subarray(0, begin)
  if (rest.length > 0) {
    noise.push(rest)
    noise.push(Buffer.of(newline))
  }
  return message
}

function parse(text: string): object | undefined {
  try {
    const value = JSON.parse(text) as { jsonrpc?: unknown }
    return value.jsonrpc === '2.0' ? value : undefined
  } catch {
    // Noise that has a brace.
    return undefined
  }
}

/** The message as the SDK may have it; nothing when it would only be reported on our stderr. */
function accept(
  message: { method?: unknown; id?: unknown; params?: unknown; result?: unknown },
  pending: Set<unknown>,
): AnyMessage | undefined {
  const { method, id, params, result } = message
  if (method === 'session/update') {
    const known = paramsOfInterest(params)
    return known && ({ ...message, params: known } as AnyMessage)
  }
  if (method !== undefined) return message as AnyMessage
  if (!pending.delete(id)) return undefined
  const isEmpty = 'result' in message && (typeof result !== 'object' || result === null)
  return (isEmpty ? { ...message, result: {} } : message) as AnyMessage
}
