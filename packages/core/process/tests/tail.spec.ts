import { describe, expect, test } from 'vitest'
import { ByteTail, decode, decodeHead, decodeTail } from '../src/index.ts'

function tailOf(maxBytes: number, chunks: readonly string[]): ByteTail {
  const tail = new ByteTail(maxBytes)
  for (const chunk of chunks) tail.push(Buffer.from(chunk))
  return tail
}

describe('ByteTail', () => {
  test.each([
    ['nothing', [], '', false],
    ['less than fits', ['ab', 'c'], 'abc', false],
    ['exactly what fits', ['ab', 'cdef'], 'abcdef', false],
    ['more than fits', ['abcd', 'efgh'], 'cdefgh', true],
    ['a chunk larger than all', ['x', 'abcdefghijkl'], 'ghijkl', true],
    ['many small chunks', Array.from('abcdefghijklmnopqrstuvwxyz'), 'uvwxyz', true],
  ])('keeps the end of %s', (_, chunks, text, isCut) => {
    const tail = tailOf(6, chunks)

    expect(tail.text()).toBe(text)
    expect(tail.isCut).toBe(isCut)
  })

  test('joins a code point that was split over chunks', () => {
    const tail = new ByteTail(100)
    for (const byte of Buffer.from('a😀é')) tail.push(Buffer.from([byte]))

    expect(tail.text()).toBe('a😀é')
  })

  test.each([1, 2, 3, 4, 5, 6, 7, 8])('cuts no code point at %i bytes', (maxBytes) => {
    const text = tailOf(maxBytes, ['😀😀😀']).text()

    expect(text).toBe('😀'.repeat(Math.floor(maxBytes / 4)))
  })
})

describe('decode', () => {
  test('turns what is not UTF-8 into replacement characters', () => {
    expect(decode(Buffer.from([0x61, 0xff, 0x00, 0xed, 0xa0, 0x80]))).toBe(
      'a\ufffd\0\ufffd\ufffd\ufffd',
    )
  })

  test('keeps a byte order mark', () => {
    expect(decode(Buffer.from('\ufeffa'))).toBe('\ufeffa')
  })
})

describe('decodeHead and decodeTail', () => {
  test('leave out the code point that the cut went through', () => {
    const bytes = Buffer.from('aé😀')

    const heads = [1, 2, 3, 4, 6, 7].map((end) => decodeHead(bytes.subarray(0, end)))
    const tails = [1, 2, 3, 4, 6].map((start) => decodeTail(bytes.subarray(start)))

    expect(heads).toEqual(['a', 'a', 'aé', 'aé', 'aé', 'aé😀'])
    expect(tails).toEqual(['é😀', '😀', '😀', '', ''])
  })
})
