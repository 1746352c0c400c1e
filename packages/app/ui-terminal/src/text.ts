/** Text on its way to people: harmless, short, coloured where that is wanted. */
import { styleText } from 'node:util'
import { sanitize } from '@deepseek-ai/dsh-app'

export type Style = Parameters<typeof styleText>[0]

/** Harmless, in one line of at most `columns`; a cut shows as an ellipsis. */
export function oneLine(text: string, columns: number): string {
  const line = sanitize(text.slice(0, columns * 8))
    .replace(/\s+/g, ' ')
    .trim()
  const characters = Array.from(line)
  let width = 0
  const end = characters.findIndex((character) => (width += widthOf(character)) > columns - 1)
  return end === -1 ? line : `${characters.slice(0, end).join('')}…`
}

/** The text among content blocks. */
export function blockText(
  content: readonly { readonly type: string; readonly text?: string }[],
): string {
  return content.map(({ type, text }) => (type === 'text' ? text : '')).join('')
}

/** Colours the text when the stream takes colours: a terminal, and no `NO_COLOR`. */
export function paint(stream: NodeJS.WriteStream, style: Style, text: string): string {
  return stream.isTTY ? styleText(style, text, { stream }) : text
}

/** For example `0s`, `850ms`, `12s`, `3m05s`. */
export function formatMs(ms: number): string {
  if (ms > 0 && ms < 1000) return `${Math.round(ms)}ms`
  const seconds = Math.floor(ms / 1000)
  if (seconds < 60) return `${seconds}s`
  return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`
}

/** For example `950 tokens`, `3.4k tokens`. */
export function formatTokens(tokens: number): string {
  return tokens < 1000 ? `${tokens} tokens` : `${(tokens / 1000).toFixed(1)}k tokens`
}

/** Columns of a character, rather too many than too few: a line that wraps would spoil the redraw. */
function widthOf(character: string): number {
  return (character.codePointAt(0) ?? 0) < 0x1100 ? 1 : 2
}
