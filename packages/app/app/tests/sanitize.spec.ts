import { describe, expect, test } from 'vitest'
import { sanitize } from '../src/sanitize.ts'

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
