import { describe, expect, test } from 'vitest'
import { blockText, formatMs, formatTokens, oneLine } from '../src/text.ts'

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
