/** Shortens texts by bytes or by code points, never within one. */

/**
 * The text in at most `maxBytes` of UTF-8: whole, or its head and its tail around a mark that says
 * how many bytes are left out. `maxBytes` must have room for the mark. Lone surrogates are replaced.
 */
export function headAndTail(
  text: string,
  maxBytes: number,
  markOf: (leftOutBytes: number) => string,
): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= maxBytes) return bytes.toString()
  const room = maxBytes - Buffer.byteLength(markOf(bytes.length))
  let headEnd = Math.max(0, Math.ceil(room / 2))
  while (isContinuation(bytes[headEnd])) headEnd -= 1
  let tailStart = Math.min(bytes.length, bytes.length - Math.floor(room / 2))
  while (isContinuation(bytes[tailStart])) tailStart += 1
  const head = bytes.toString('utf8', 0, headEnd)
  const tail = bytes.toString('utf8', tailStart)
  return `${head}${markOf(tailStart - headEnd)}${tail}`
}

/** The text in one line of at most `maxLength` code points. */
export function oneLine(text: string, maxLength: number): string {
  const line = text.toWellFormed().replace(/\s+/g, ' ').trim()
  const points = Array.from(line)
  return points.length <= maxLength ? line : `${points.slice(0, maxLength - 1).join('')}…`
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
