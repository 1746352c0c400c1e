/** Parts the protocol from the noise on an agent's stdout. */
import { Transform } from 'node:stream'
import type { ByteTail } from '@deepseek-ai/dsh-process'

const newline = 0x0a
const brace = 0x7b

/**
 * Passes on lines that begin with `{`; banners and other noise go into `noise`. It only looks at
 * the first byte of each line, so split lines and characters cost nothing. A last line without a
 * line end gets one.
 */
export function protocolLines(noise: ByteTail): Transform {
  let isAtStart = true
  let isNoise = false
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let begin = 0
      for (let at = 0; at < chunk.length;) {
        if (isAtStart) {
          const byte = chunk[at]
          if (byte === newline || isBlank(byte)) {
            at += 1
            continue
          }
          const wasNoise = isNoise
          isNoise = byte !== brace
          isAtStart = false
          if (wasNoise !== isNoise) {
            give(this, chunk.subarray(begin, at), wasNoise)
            begin = at
          }
        }
        const end = chunk.indexOf(newline, at)
        if (end === -1) break
        isAtStart = true
        at = end + 1
      }
      give(this, chunk.subarray(begin), isNoise)
      done()
    },
    flush(done) {
      if (!isAtStart && !isNoise) this.push('\n')
      done()
    },
  })

  function give(stream: Transform, bytes: Buffer, toNoise: boolean): void {
    if (bytes.length === 0) return
    if (toNoise) noise.push(bytes)
    else stream.push(bytes)
  }
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d
}
