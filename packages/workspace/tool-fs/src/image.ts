/** Tells images by their first bytes: a file's name may lie, and a false image ends a conversation. */

/** In hexadecimal. */
const signatures: readonly (readonly [mediaType: string, pattern: RegExp])[] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^47494638(?:37|39)61/],
  ['image/webp', /^52494646.{8}57454250/],
]

/** Whether a name looks like that of an image. */
export function isImageName(path: string): boolean {
  return /\.(?:png|jpe?g|gif|webp)$/i.test(path)
}

/** The media type; absent when it is none that models take. */
export function mediaTypeOf(bytes: Buffer): string | undefined {
  const start = bytes.toString('hex', 0, 16)
  return signatures.find(([, pattern]) => pattern.test(start))?.[0]
}
