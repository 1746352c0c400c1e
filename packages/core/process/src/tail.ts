/** Keeps the end of a byte stream, and cuts text on code-point borders. */

/** The last bytes of a stream: constant memory, linear time, whatever the size of the chunks. */
export class ByteTail {
  private readonly ring: Buffer
  private total = 0

  constructor(maxBytes: number) {
    this.ring = Buffer.alloc(maxBytes)
  }

  /** Whether bytes were left out. */
  get isCut(): boolean {
    return this.total > this.ring.length
  }

  push(chunk: Uint8Array): void {
    const size = this.ring.length
    const kept = chunk.subarray(Math.max(0, chunk.length - size))
    const at = (this.total + chunk.length - kept.length) % size
    const fitting = Math.min(kept.length, size - at)
    this.ring.set(kept.subarray(0, fitting), at)
    this.ring.set(kept.subarray(fitting), 0)
    this.total += chunk.length
  }

  bytes(): Buffer {
    if (!this.isCut) return Buffer.from(this.ring.subarray(0, this.total))
    const at = this.total % this.ring.length
    return Buffer.concat([this.ring.subarray(at), this.ring.subarray(0, at)])
  }

  /** As text; a code point that the cut went through is left out. */
  text(): string {
    return this.isCut ? decodeTail(this.bytes()) : decode(this.bytes())
  }
}

/** Bytes as text; what is not UTF-8 becomes U+FFFD. */
export function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
}

/** Decodes bytes whose start was cut off. */
export function decodeTail(bytes: Uint8Array): string {
  let start = 0
  while (start < 3 && isContinuation(bytes[start])) start += 1
  return decode(bytes.subarray(start))
}

/** Decodes bytes whose end was cut off. */
export function decodeHead(bytes: Uint8Array): string {
  // A streaming decoder holds back a code point that is not complete.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true })
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000
}
