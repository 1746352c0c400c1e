/** Makes text for a model of what file access gives. */
import { type Found, type LineMatch, quote, type TextPart } from '@deepseek-ai/dsh-fs-local'

/** Numbered lines, and a note when the file has more. */
export function formatLines({ path, lines, lineCount }: TextPart, firstLine: number): string {
  if (lineCount === 0) return `(${quote(path)} is empty)`
  const text = lines.map((line, i) => `${String(firstLine + i).padStart(6)}\t${line}`).join('\n')
  const lastLine = firstLine + lines.length - 1
  if (firstLine === 1 && lastLine === lineCount) return text
  const more = lastLine < lineCount ? `; read on with offset ${lastLine + 1}` : ''
  return `${text}\n(lines ${firstLine} to ${lastLine} of ${lineCount}${more})`
}

/** One path a line. */
export function formatPaths({ items, cut }: Found<string>): string {
  return withNote(items.map(nameOf), { cut, what: 'files' })
}

/** One match a line, as `path:line:text`. */
export function formatMatches({ items, cut }: Found<LineMatch>): string {
  const lines = items.map(({ path, line, text }) => `${nameOf(path)}:${line}:${text}`)
  return withNote(lines, { cut, what: 'lines' })
}

function withNote(
  lines: readonly string[],
  { cut, what }: { readonly cut: Found<unknown>['cut']; readonly what: string },
): string {
  switch (cut) {
    case 'results':
      return [
        ...lines,
        `(more ${what} match than the ${lines.length} above: narrow the search)`,
      ].join('\n')
    case 'time':
      return [
        ...lines,
        `(stopped after ${lines.length} ${what}: it took too long; narrow the search)`,
      ].join('\n')
    case undefined:
      return lines.length === 0 ? `(no ${what} match)` : lines.join('\n')
  }
}

/** A name that would be taken for several lines is quoted. */
function nameOf(path: string): string {
  return /\p{Cc}/u.test(path) ? quote(path) : path
}
