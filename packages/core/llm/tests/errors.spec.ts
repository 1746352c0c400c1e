import { describe, expect, test } from 'vitest'
import {
  failureOf,
  HarnessError,
  isHarnessError,
  LlmError,
  messageOf,
  quote,
} from '../src/index.ts'

const cannotBeRead = 'an error that cannot be read'

const unreadable: unknown = new Proxy(new Error('x'), {
  get: fail,
  has: fail,
  getPrototypeOf: fail,
})

function fail(): never {
  throw new Error('not for reading')
}

function withGetter(error: Error, key: string): Error {
  return Object.defineProperty(error, key, { get: fail })
}

function withMessage(value: unknown): Error {
  return Object.defineProperty(new Error('x'), 'message', { value })
}

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
    [
      'one whose code is no text',
      Object.assign(new LlmError('MODEL_AUTH', 'x'), { code: () => 1 }),
    ],
    ['one whose code cannot be read', withGetter(new LlmError('MODEL_AUTH', 'x'), 'code')],
    ['a proxy that throws', unreadable],
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
    ['an error with neither message nor name', Object.assign(new Error(''), { name: '' }), 'Error'],
    ['an error whose message is no text', withMessage({ reason: 7 }), '{ reason: 7 }'],
    ['an error whose message throws', withGetter(new Error('x'), 'message'), cannotBeRead],
    ['a proxy that throws', unreadable, cannotBeRead],
  ])('gives the text of %s', (_, thrown, text) => {
    expect(messageOf(thrown)).toBe(text)
  })
})

describe('failureOf', () => {
  test.each([
    ['of a harness error', new LlmError('MODEL_AUTH', 'no key'), 'MODEL_AUTH', 'no key'],
    ['of another error', new Error('no such file'), 'OTHER', 'no such file'],
    ['of a text', 'thrown text', 'OTHER', 'thrown text'],
    [
      'of an error whose message is no text',
      withMessage(() => 1),
      'OTHER',
      '[Function (anonymous)]',
    ],
    ['of a proxy that throws', unreadable, 'OTHER', cannotBeRead],
  ])('gives code and message %s, always as texts', (_, error, code, message) => {
    expect(failureOf(error, 'OTHER')).toEqual({ code, message })
  })
})

describe('quote', () => {
  test.each([
    ['a', '"a"'],
    ['x'.repeat(100), `"${'x'.repeat(100)}"`],
    ['x'.repeat(101), `"${'x'.repeat(100)}…"`],
  ])('puts %j in quotes, and cuts it where it is long', (text, quoted) => {
    expect(quote(text)).toBe(quoted)
  })
})
