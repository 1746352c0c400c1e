import { describe, expect, test } from 'vitest'
import { AppError } from '../src/errors.ts'
import { errorText, pathOf, placeOf, stackOf } from '../src/error-text.ts'

describe('errorText', () => {
  test.each([
    ['a text', 'oops', 'oops'],
    ['nothing', undefined, 'undefined'],
    ['an error of ours, whose place does not matter', new AppError('USAGE', 'no'), 'no'],
    [
      'a cause',
      new AppError('USAGE', 'no', { cause: new AppError('USAGE', 'because') }),
      'no: because',
    ],
    ['a cause that is a text', new AppError('USAGE', 'no', { cause: 'because' }), 'no: because'],
  ])('gives the message of %s', (_what, error, text) => {
    expect(errorText(error)).toBe(text)
  })

  test('ends with an error that is its own cause, and with a cause that is no text', () => {
    const circular = new AppError('USAGE', 'no')
    circular.cause = circular

    expect(errorText(circular)).toMatch(/^no(: no){7}$/)
    expect(stackOf(circular).match(/caused by/g)).toHaveLength(7)
    expect(errorText(new AppError('USAGE', 'no', { cause: Object.create(null) }))).toMatch(
      /^no: \[/,
    )
  })

  test('adds the place of an error that is not ours', () => {
    expect(errorText(new TypeError('oops'))).toMatch(
      /^oops \(packages\/app\/app\/tests\/error-text\.spec\.ts:\d+\)$/,
    )
  })

  test('names an error without a message', () => {
    expect(errorText(new RangeError(''))).toMatch(/^RangeError \(/)
  })
})

describe('placeOf', () => {
  test('passes over the frames of installed packages and of Node', () => {
    const error = new Error('oops')
    error.stack = [
      'Error: oops',
      '    at parse (node:internal/x:1:1)',
      '    at y (file:///a/node_modules/b/c.js:2:3)',
      '    at file:///a/d.ts:4:5',
    ].join('\n')

    expect(placeOf(error)).toBe('/a/d.ts:4')
  })

  test('is absent when the stack does not tell', () => {
    const error = new Error('oops')
    delete error.stack

    expect(placeOf(error)).toBeUndefined()
  })
})

describe('pathOf', () => {
  test.each([
    [`${process.cwd()}/a/b.yml`, 'a/b.yml'],
    ['/elsewhere/b.yml', '/elsewhere/b.yml'],
    ['file:///elsewhere/b%20c.yml', '/elsewhere/b c.yml'],
  ])('writes %s as %s', (path, text) => {
    expect(pathOf(path)).toBe(text)
  })
})
