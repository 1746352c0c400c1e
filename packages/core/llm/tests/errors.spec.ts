import { describe, expect, test } from 'vitest'
import { HarnessError, isHarnessError, LlmError, messageOf } from '../src/index.ts'

describe('HarnessError', () => {
  test('carries its code, its message and its cause', () => {
    const cause = new Error('socket closed')

    const error = new LlmError('MODEL_UNAVAILABLE', 'no answer', { cause })

    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name: 'LlmError', code: 'MODEL_UNAVAILABLE', cause })
    expect(error.message).toBe('no answer')
  })
})

describe('isHarnessError', () => {
  test('recognises an error of another copy of the package', async () => {
    const url = new URL('../src/errors.ts?copy', import.meta.url).href
    const copy = (await import(url)) as { HarnessError: typeof HarnessError }

    const error = new copy.HarnessError('SOME_CODE', 'from elsewhere')

    expect(error).not.toBeInstanceOf(HarnessError)
    expect(isHarnessError(error)).toBe(true)
  })

  test.each([
    ['a plain error', new Error('x')],
    ['an error with a code', Object.assign(new Error('x'), { code: 'ENOENT' })],
    ['null', null],
    ['a text', 'UNKNOWN_MODEL'],
  ])('does not take %s for one', (_, value) => {
    expect(isHarnessError(value)).toBe(false)
  })
})

describe('messageOf', () => {
  test.each([
    ['an error', new Error('no such file'), 'no such file'],
    ['an error without a message', new TypeError(), 'TypeError'],
    ['a text', 'just a text', 'just a text'],
    ['undefined', undefined, 'undefined'],
    ['an object', { code: 7 }, '{ code: 7 }'],
    ['an object that no text can be made of', Object.create(null), '[Object: null prototype] {}'],
  ])('gives the text of %s', (_, thrown, text) => {
    expect(messageOf(thrown)).toBe(text)
  })
})
