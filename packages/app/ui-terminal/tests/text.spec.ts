import { describe, expect, test } from 'vitest'
import { blockText, formatMs, formatTokens, oneLine, sanitize } from '../src/text.ts'

describe('sanitize', () => {
  test.each([
    ['colours', '\u001b[31mred\u001b[0m', 'red'],
    ['a title', '\u001b]0;owned\u0007text', 'text'],
    ['a link', '\u001b]8;;http://x\u001b\\text\u001b]8;;\u001b\\', 'text'],
    ['a cursor move of one byte', 'a\u009b2Jb', 'ab'],
    ['a bare escape', 'a\u001bb', 'ab'],
    ['a carriage return, which would hide the line', 'evil\rgood', 'evilgood'],
    ['backspaces', 'evil\b\b\b\bgood', 'evilgood'],
    ['a bell and a null', 'a\u0007b\u0000c', 'abc'],
  ])('takes out %s', (_what, text, safe) => {
    expect(sanitize(text)).toBe(safe)
  })

  test('keeps lines, tabs and every script', () => {
    expect(sanitize('a\tb\nπ 漢字 🙂')).toBe('a\tb\nπ 漢字 🙂')
  })
})

describe('oneLine', () => {
  test.each([
    ['a  b\n\tc', 20, 'a b c'],
    ['abcdef', 6, 'abcde…'],
    ['abcde', 6, 'abcde'],
    ['漢字漢字', 6, '漢字…'],
    ['🙂🙂🙂🙂', 6, '🙂🙂…'],
    ['\u001b[2Jabc', 20, 'abc'],
    ['', 6, ''],
  ])('makes of %j in %d columns %j', (text, columns, line) => {
    expect(oneLine(text, columns)).toBe(line)
  })
})

describe('formats', () => {
  test.each([
    [0, '0s'],
    [850, '850ms'],
    [12_999, '12s'],
    [185_000, '3m05s'],
  ])('writes %d ms as %s', (ms, text) => {
    expect(formatMs(ms)).toBe(text)
  })

  test.each([
    [950, '950 tokens'],
    [3400, '3.4k tokens'],
  ])('writes %d as %s', (tokens, text) => {
    expect(formatTokens(tokens)).toBe(text)
  })

  test('takes the text of text blocks alone', () => {
    expect(
      blockText([{ type: 'text', text: 'a' }, { type: 'reasoning', text: 'b' }, { type: 'image' }]),
    ).toBe('a')
  })
})
