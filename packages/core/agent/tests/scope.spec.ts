import { describe, expect, test } from 'vitest'
import { scopeOf } from '../src/scope.ts'

describe('scopeOf', () => {
  test('is absent where nothing narrows', () => {
    expect(scopeOf()).toBeUndefined()
    expect(scopeOf([])).toBeUndefined()
  })

  test.each([
    [[{ allow: ['a', 'b'] }], ['a', 'b']],
    [[{ deny: ['a', 'b'] }], ['c', 'd']],
    [[{ allow: ['a', 'b'], deny: ['a'] }], ['b']],
    [[{ deny: ['a'] }, { allow: ['a', 'b', 'c'] }, { deny: ['c'] }], ['b']],
    [[{ allow: [] }], []],
    [[{}], ['a', 'b', 'c', 'd']],
  ])('lets pass what passes all of %j', (filters, passing) => {
    const scope = scopeOf(filters)

    expect(['a', 'b', 'c', 'd'].filter((name) => scope?.allows(name))).toEqual(passing)
  })
})
