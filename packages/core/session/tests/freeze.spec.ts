import { describe, expect, test } from 'vitest'
import { freezeJson, SessionError } from '../src/index.ts'
import { createCycle } from './helpers.ts'

function nested(depth: number): unknown {
  let value: unknown = 'leaf'
  for (let level = 0; level < depth; level += 1) value = [value]
  return value
}

describe('freezeJson', () => {
  test('copies and freezes every level, and leaves the original alone', () => {
    const original = { list: [{ text: 'a' }], flag: true, nothing: null, count: 1.5 }

    const frozen = freezeJson(original)
    original.list[0]!.text = 'changed'

    expect(frozen).toEqual({ list: [{ text: 'a' }], flag: true, nothing: null, count: 1.5 })
    expect(Object.isFrozen(frozen)).toBe(true)
    expect(Object.isFrozen(frozen.list)).toBe(true)
    expect(Object.isFrozen(frozen.list[0])).toBe(true)
    expect(Object.isFrozen(original)).toBe(false)
  })

  test('leaves out properties that are undefined', () => {
    expect(Object.keys(freezeJson({ here: 1, absent: undefined }))).toEqual(['here'])
  })

  test.each<[string, unknown, string]>([
    ['a function', { list: [1, { run: () => {} }] }, '"data.list[1].run" is function'],
    ['undefined in an array', { list: ['a', undefined] }, '"data.list[1]" is undefined'],
    ['a hole in an array', Array(1), '"data[0]" is undefined'],
    ['NaN', { usage: { inputTokens: Number.NaN } }, '"data.usage.inputTokens" is NaN'],
    ['infinity', [Number.POSITIVE_INFINITY], '"data[0]" is Infinity'],
    ['a bigint', { big: 1n }, '"data.big" is bigint'],
    ['a symbol', Symbol('s'), '"data" is symbol'],
    ['undefined itself', undefined, '"data" is undefined'],
    ['a date', { when: new Date(0) }, '"data.when" is Date'],
    ['a map', { map: new Map() }, '"data.map" is Map'],
    ['an instance of a class', { url: new URL('http://x') }, '"data.url" is URL'],
    [
      'an object with a prototype of its own',
      { own: Object.create(Object.create(null)) },
      '"data.own" is an object with a prototype',
    ],
    ['too deep nesting', nested(101), 'is nested deeper than 100'],
    ['a cycle', createCycle(), '"data.self.self.'],
  ])('refuses %s and names its path', (_, value, found) => {
    const freeze = (): unknown => freezeJson(value)

    expect(freeze).toThrow(SessionError)
    expect(freeze).toThrow(expect.objectContaining({ code: 'NOT_JSON' }))
    expect(freeze).toThrow('session data must be JSON: ')
    expect(freeze).toThrow(found)
  })

  test('takes what is nested as deep as it allows', () => {
    expect(JSON.stringify(freezeJson(nested(100)))).toBe(JSON.stringify(nested(100)))
  })

  test('names the path from the root that it is told', () => {
    expect(() => freezeJson([Number.NaN], 'input')).toThrow('"input[0]" is NaN')
  })

  test('takes objects without a prototype', () => {
    const value: unknown = Object.assign(Object.create(null), { a: 1 })

    expect(freezeJson(value)).toEqual({ a: 1 })
  })

  test('keeps a "__proto__" key as data', () => {
    const value = JSON.parse('{ "__proto__": { "polluted": true } }') as object

    const frozen = freezeJson(value)

    expect(Object.getPrototypeOf(frozen)).toBe(Object.prototype)
    expect(JSON.stringify(frozen)).toBe('{"__proto__":{"polluted":true}}')
    expect('polluted' in frozen).toBe(false)
  })

  test('repairs lone surrogates in texts and in keys, and leaves pairs alone', () => {
    const value = JSON.parse(String.raw`{ "cut \ud83d": "\udc4d cut", "pair": "\ud83d\udc4d" }`)

    expect(freezeJson(value)).toEqual({ 'cut \ufffd': '\ufffd cut', pair: '👍' })
  })
})
