import { describe, expect, test } from 'vitest'
import { headAndTail, oneLine } from '../src/bound.ts'

const mark = (bytes: number): string => `[${bytes}]`

describe('headAndTail', () => {
  test('keeps a text that fits', () => {
    expect(headAndTail('abcdef', 6, mark)).toBe('abcdef')
  })

  test('leaves out the middle and says how many bytes', () => {
    expect(headAndTail('0123456789abcdef', 10, mark)).toBe('012[10]def')
  })

  test.each([1, 2, 3, 4].map((shift) => [shift]))(
    'cuts between code points when they start at byte %i',
    (shift) => {
      const text = `${'x'.repeat(shift)}${'🙂é€'.repeat(500)}`

      for (let maxBytes = 100; maxBytes < 120; maxBytes += 1) {
        const bounded = headAndTail(text, maxBytes, mark)
        const [head, tail] = bounded.split(/\[\d+\]/)
        expect(Buffer.byteLength(bounded)).toBeLessThanOrEqual(maxBytes)
        expect(Buffer.byteLength(bounded)).toBeGreaterThan(maxBytes - 10)
        expect(text.startsWith(head ?? '-')).toBe(true)
        expect(text.endsWith(tail ?? '-')).toBe(true)
        expect(bounded).not.toContain('\uFFFD')
      }
    },
  )

  test('counts what it leaves out exactly', () => {
    const text = '🙂'.repeat(100)

    const bounded = headAndTail(text, 101, mark)

    const leftOut = Number(/\[(\d+)\]/.exec(bounded)?.[1])
    const kept = Buffer.byteLength(bounded.replace(/\[\d+\]/, ''))
    expect(kept + leftOut).toBe(400)
  })

  test('replaces lone surrogates', () => {
    expect(headAndTail('a\uD83Db', 10, mark)).toBe('a\uFFFDb')
  })
})

describe('oneLine', () => {
  test.each([
    ['joins lines and spaces', ' a\n\n b\t c ', 20, 'a b c'],
    ['keeps a line that fits', 'abcde', 5, 'abcde'],
    ['cuts a longer one', 'abcdef', 5, 'abcd…'],
    ['counts code points', '🙂🙂🙂', 2, '🙂…'],
    ['replaces lone surrogates', 'a\uDE42', 5, 'a\uFFFD'],
  ])('%s', (_, text, maxLength, expected) => {
    expect(oneLine(text, maxLength)).toBe(expected)
  })
})
