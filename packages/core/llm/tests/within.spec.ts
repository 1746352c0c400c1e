import { describe, expect, test } from 'vitest'
import { within } from '../src/index.ts'

describe('within', () => {
  test('tells whether a promise settles in time, and passes its rejection on', async () => {
    expect(await within(10_000, Promise.resolve('x'))).toBe(true)
    expect(await within(1, new Promise(() => {}))).toBe(false)
    await expect(within(10_000, Promise.reject(new Error('no')))).rejects.toThrow('no')
  })
})
