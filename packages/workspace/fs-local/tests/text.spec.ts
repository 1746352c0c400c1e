import { describe, expect, test } from 'vitest'
import { cutText, editText, selectLines } from '../src/text.ts'

const range = { firstLine: 1, maxLines: 100, maxBytes: 10_000 }

/** The text after an edit, or the message that refuses it. */
function edited(text: string, oldText: string, newText: string, replaceAll = false): string {
  try {
    return editText(text, { oldText, newText, replaceAll }, 'a.txt', 1000).text
  } catch (error) {
    return `${(error as { code: string }).code}: ${(error as Error).message}`
  }
}

describe('selectLines', () => {
  test('counts lines, whether or not the last one has an end', () => {
    expect(selectLines('a\nb', range)).toEqual({ lines: ['a', 'b'], lineCount: 2 })
    expect(selectLines('a\nb\n', range)).toEqual({ lines: ['a', 'b'], lineCount: 2 })
    expect(selectLines('a\r\n\r\n', range)).toEqual({ lines: ['a', ''], lineCount: 2 })
  })

  test('stops before the bytes run out, but gives one line at least', () => {
    const text = 'é'.repeat(20) + '\n' + 'b\n'.repeat(5)

    expect(selectLines(text, { ...range, maxBytes: 70 }).lines).toEqual(['é'.repeat(20), 'b', 'b'])
    expect(selectLines(text, { ...range, maxBytes: 1 }).lines).toEqual(['é'.repeat(20)])
  })

  test('cuts a long line between characters and tells how much is missing', () => {
    const { lines } = selectLines(`${'a'.repeat(1999)}😀 end`, range)

    expect(lines).toEqual([`${'a'.repeat(1999)}… (6 more characters)`])
    expect(lines[0]?.isWellFormed()).toBe(true)
  })
})

describe('cutText', () => {
  test.each([
    ['a😀b', 4, 'a😀b'],
    ['a😀b', 3, 'a😀'],
    ['a😀b', 2, 'a'],
    ['a😀b', 1, 'a'],
    ['é', 1, 'é'],
  ])('of %j at %i gives %j', (text, length, expected) => {
    expect(cutText(text, length)).toBe(expected)
  })
})

describe('editText', () => {
  test('replaces one occurrence, or all when asked', () => {
    expect(edited('a b c', 'b', 'x')).toBe('a x c')
    expect(edited('b a b', 'b', 'bb', true)).toBe('bb a bb')
    expect(edited('a b c', ' b', '')).toBe('a c')
  })

  test('takes the texts literally', () => {
    expect(edited('a.c $& (', '.c $& (', '$1 $& $$')).toBe('a$1 $& $$')
  })

  test('tells the lines at which it replaced', () => {
    const edit = { oldText: 'x', newText: 'y', replaceAll: true }

    expect(editText('x\n\nx x\nx', edit, 'a.txt', 1000).lines).toEqual([1, 3, 3, 4])
  })

  test.each([
    ['in CRLF files, from LF', 'a\r\nb\r\nc\r\n', 'a\nb', 'x\ny', 'x\r\ny\r\nc\r\n'],
    ['in CRLF files, from CRLF', 'a\r\nb\r\n', 'a\r\nb', 'x\r\ny', 'x\r\ny\r\n'],
    ['in LF files', 'a\nb\n', 'a\nb', 'x\ny', 'x\ny\n'],
    [
      'where only some lines have CRLF',
      'a\r\nb\nc\nd\r\ne\n',
      'c\nd',
      'x\ny',
      'a\r\nb\nx\ny\r\ne\n',
    ],
    ['where the match ends with a line', 'a\r\nb\r\nc', 'a\nb\n', 'x\n', 'x\r\nc'],
    ['where a lone CR is text', 'a\rb\r\nc\r\n', 'b\nc', 'x', 'a\rx\r\n'],
  ])('keeps line ends %s', (_, text, oldText, newText, expected) => {
    expect(edited(text, oldText, newText)).toBe(expected)
  })

  test('keeps the byte order mark', () => {
    expect(edited('\uFEFFone', 'one', 'two')).toBe('\uFEFFtwo')
  })

  test('says of an absent text what is nearly the same', () => {
    expect(edited('a\n  b();\n\tc();\n', 'b();\nc();', 'x')).toBe(
      'NO_MATCH: the old text is not in "a.txt"; line 2 differs only in white space: it must match exactly, white space included and line numbers left out; read the file again',
    )
    expect(edited('a\nb\n', 'c', 'x')).toMatch(/^NO_MATCH: the old text is not in "a.txt": it must/)
    expect(edited('a\nb\n', '  ', 'x')).not.toContain('differs only')
  })

  test('says how often an ambiguous text occurs, and where', () => {
    expect(edited('x\ny\nx\n', 'x', 'z')).toBe(
      'AMBIGUOUS_MATCH: the old text occurs 2 times in "a.txt" (lines 1, 3): add surrounding lines until it is unique, or replace all',
    )
    expect(edited('x\n'.repeat(12), 'x', 'z')).toContain('(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)')
  })

  test.each([
    ['an empty old text', '', 'x', 'INVALID_EDIT'],
    ['a change that changes nothing', 'a', 'a', 'INVALID_EDIT'],
    ['half a character to find', '\uD83D', 'x', 'INVALID_TEXT'],
    ['half a character to put in', 'a', '\uDE00', 'INVALID_TEXT'],
    ['a text that grows too large', 'a', 'x'.repeat(100), 'FILE_TOO_LARGE'],
  ])('refuses %s', (_, oldText, newText, code) => {
    expect(edited('a😀'.repeat(20), oldText, newText, true)).toMatch(new RegExp(`^${code}: `))
  })

  test('finds nothing near in linear time', () => {
    const text = 'a\n'.repeat(500_000)
    const start = performance.now()

    expect(edited(text, `${' a\n'.repeat(50_000)}b`, 'x')).toContain('NO_MATCH')
    expect(performance.now() - start).toBeLessThan(2000)
  })
})
