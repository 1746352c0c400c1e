/** Text as it is in files: byte order mark, line ends, exact replacement. */
import { isUtf8 } from 'node:buffer'
import { FsError, quote } from './errors.ts'

/** One exact replacement. */
export interface Edit {
  readonly oldText: string
  readonly newText: string
  /** Default: the old text must occur exactly once. */
  readonly replaceAll?: boolean
}

/** A changed text, and where it changed. */
export interface EditedText {
  readonly text: string
  /** Line numbers, in the text as it was, at which replacements begin. */
  readonly lines: readonly number[]
}

const mark = '\uFEFF'

/** @throws FsError `BINARY_FILE`. The byte order mark, when there is one, stays in the text. */
export function decodeText(bytes: Buffer, shown: string): string {
  const zero = bytes.indexOf(0)
  if (zero !== -1) throw binaryError(shown, `a NUL byte at offset ${zero}`)
  if (!isUtf8(bytes)) throw binaryError(shown, 'bytes that are not UTF-8')
  return bytes.toString('utf8')
}

/** The text without its byte order mark. */
export function withoutMark(text: string): string {
  return text.startsWith(mark) ? text.slice(1) : text
}

/** `text` in the form of the text that it takes the place of: with its mark and its line ends. */
export function inFormOf(previous: string, text: string): string {
  const formed = withLineEndsOf(previous, text)
  return previous.startsWith(mark) && !formed.startsWith(mark) ? mark + formed : formed
}

/** Which lines of a text are wanted. */
export interface LineRange {
  /** Counts from 1. */
  readonly firstLine: number
  readonly maxLines: number
  /** Of the shown lines together, 8 for each line's number and end included. */
  readonly maxBytes: number
}

/** The lines of a range, long ones cut, and how many lines the text has. */
export interface Lines {
  readonly lines: readonly string[]
  readonly lineCount: number
}

const maxLineLength = 2000

/** The wanted lines as far as they fit, but at least one; without line ends. */
export function selectLines(text: string, { firstLine, maxLines, maxBytes }: LineRange): Lines {
  const all = linesOf(text)
  const lines: string[] = []
  let bytes = 0
  for (const line of all.slice(firstLine - 1, firstLine - 1 + maxLines)) {
    const short = shortLine(line)
    bytes += Buffer.byteLength(short) + 8
    if (bytes > maxBytes && lines.length > 0) break
    lines.push(short)
  }
  return { lines, lineCount: all.length }
}

/** The longest start of `text` that has at most `maxLength` units and cuts no character in two. */
export function cutText(text: string, maxLength: number): string {
  const start = text.slice(0, maxLength)
  return start.isWellFormed() ? start : start.slice(0, -1)
}

function shortLine(line: string): string {
  if (line.length <= maxLineLength) return line
  const start = cutText(line, maxLineLength)
  return `${start}… (${line.length - start.length} more characters)`
}

/** A final line end opens no further line. */
function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/** @throws FsError `INVALID_TEXT`: half a character cannot be written as UTF-8. */
export function requireWellFormed(text: string, shown: string): void {
  if (text.isWellFormed()) return
  throw new FsError(
    'INVALID_TEXT',
    `the text for ${quote(shown)} has half a surrogate pair: write whole characters`,
  )
}

/** @throws FsError `FILE_TOO_LARGE`. @param bytes that the file will have, or fewer. */
export function requireFits(bytes: number, maxBytes: number, shown: string): void {
  if (bytes <= maxBytes) return
  throw new FsError(
    'FILE_TOO_LARGE',
    `${quote(shown)} would have ${bytes} bytes, the limit is ${maxBytes}: write less`,
  )
}

/**
 * Replaces text, taking CRLF and LF for the same; what is not replaced stays as it is, byte for byte.
 * @throws FsError `INVALID_EDIT`, `INVALID_TEXT`, `NO_MATCH`, `AMBIGUOUS_MATCH`, `FILE_TOO_LARGE`.
 */
export function editText(text: string, edit: Edit, shown: string, maxBytes: number): EditedText {
  checkEdit(edit, shown)
  const plain = toLf(text)
  const oldText = toLf(edit.oldText)
  const starts = startsOf(plain, oldText)
  const lines = lineNumbersAt(plain, starts)
  if (starts.length === 0) throw noMatch(plain, oldText, shown)
  if (starts.length > 1 && edit.replaceAll !== true) throw ambiguousMatch(lines, shown)
  const newText = withLineEndsOf(text, edit.newText)
  requireFits(text.length + starts.length * (newText.length - oldText.length), maxBytes, shown)
  const rawOffsetOf = createOffsets(text)
  const parts: string[] = []
  let end = 0
  for (const start of starts) {
    parts.push(text.slice(end, rawOffsetOf(start)), newText)
    end = rawOffsetOf(start + oldText.length)
  }
  return { text: parts.join('') + text.slice(end), lines }
}

function checkEdit({ oldText, newText }: Edit, shown: string): void {
  requireWellFormed(oldText, shown)
  requireWellFormed(newText, shown)
  if (oldText === '') {
    throw new FsError(
      'INVALID_EDIT',
      `the old text for ${quote(shown)} is empty: name what to replace`,
    )
  }
  if (oldText === newText) {
    throw new FsError('INVALID_EDIT', `the old and the new text for ${quote(shown)} are the same`)
  }
}

/** The text with LF for every CRLF. */
export function toLf(text: string): string {
  return text.replaceAll('\r\n', '\n')
}

function withLineEndsOf(previous: string, text: string): string {
  const crlf = countOf(previous, '\r\n')
  const isCrlf = crlf * 2 > countOf(previous, '\n')
  return isCrlf ? toLf(text).replaceAll('\n', '\r\n') : text
}

function countOf(text: string, part: string): number {
  return startsOf(text, part).length
}

function startsOf(text: string, part: string): number[] {
  const starts: number[] = []
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) {
    starts.push(at)
  }
  return starts
}

function lineNumbersAt(text: string, offsets: readonly number[]): number[] {
  let line = 1
  let from = 0
  return offsets.map((offset) => {
    line += countOf(text.slice(from, offset), '\n')
    from = offset
    return line
  })
}

/** Maps ascending offsets in the text with LF to offsets in the text as it is. */
function createOffsets(text: string): (offset: number) => number {
  let plain = 0
  let raw = 0
  return (offset) => {
    for (; plain < offset; plain += 1) raw += text.startsWith('\r\n', raw) ? 2 : 1
    return raw
  }
}

function binaryError(shown: string, what: string): FsError {
  return new FsError(
    'BINARY_FILE',
    `${quote(shown)} is not text: it has ${what}; only UTF-8 text can be read or changed`,
  )
}

function noMatch(text: string, oldText: string, shown: string): FsError {
  const similar = similarLine(text, oldText)
  const hint = similar === undefined ? '' : `; line ${similar} differs only in white space`
  return new FsError(
    'NO_MATCH',
    `the old text is not in ${quote(shown)}${hint}: it must match exactly, white space included and line numbers left out; read the file again`,
  )
}

/** The first line from which the text is the old one but for the white space around its lines. */
function similarLine(text: string, oldText: string): number | undefined {
  const wanted = trimLines(oldText)
  const lines = trimLines(text)
  const start = wanted.trim() === '' ? -1 : lines.indexOf(wanted)
  return start === -1 ? undefined : countOf(lines.slice(0, start + 1), '\n')
}

/** Every line trimmed, and parted from its neighbours on both sides. */
function trimLines(text: string): string {
  return `\n${linesOf(text)
    .map((line) => line.trim())
    .join('\n')}\n`
}

function ambiguousMatch(lines: readonly number[], shown: string): FsError {
  const shownLines = lines.slice(0, 10).join(', ') + (lines.length > 10 ? ', …' : '')
  return new FsError(
    'AMBIGUOUS_MATCH',
    `the old text occurs ${lines.length} times in ${quote(shown)} (lines ${shownLines}): add surrounding lines until it is unique, or replace all`,
  )
}
