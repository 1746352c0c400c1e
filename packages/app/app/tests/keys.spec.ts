import z from '@deepseek-ai/schemastery'
import { describe, expect, test } from 'vitest'
import { nearest, type SchemaNode, unknownKeys } from '../src/keys.ts'

function pathsOf(schema: unknown, value: unknown): string[] {
  return unknownKeys(schema as SchemaNode, value).map(({ path }) => path)
}

describe('unknownKeys', () => {
  const inner = z.object({ a: z.number() })

  test.each([
    ['an object', inner, { a: 1, b: 2 }, ['b']],
    ['an object in an object', z.object({ x: inner }), { x: { b: 2 } }, ['x.b']],
    ['a list', z.object({ x: z.array(inner) }), { x: [{ a: 1 }, { b: 2 }] }, ['x.1.b']],
    ['a dict, whose own keys are free', z.dict(inner), { free: { b: 2 } }, ['free.b']],
    ['a tuple', z.tuple([z.number(), inner]), [1, { b: 2 }], ['1.b']],
    [
      'an intersection',
      z.intersect([inner, z.object({ c: z.string() })]),
      { a: 1, c: '', b: 2 },
      ['b'],
    ],
    [
      'a union, by its best member',
      z.union([z.object({ c: z.string() }), inner]),
      { a: 1, b: 2 },
      ['b'],
    ],
    ['what is transformed', z.transform(inner, (value) => value), { b: 2 }, ['b']],
    ['an open schema', z.object({ x: z.any() }), { x: { b: 2 } }, []],
    ['an intersection with an open member', z.intersect([inner, z.dict(z.any())]), { b: 2 }, []],
    ['an expression', inner, { __jsExpr: 'x' }, []],
    ['a value of another kind', z.object({ x: inner }), { x: 3 }, []],
    ['no value', inner, undefined, []],
  ])('looks through %s', (_what, schema, value, paths) => {
    expect(pathsOf(schema, value)).toEqual(paths)
  })

  test('finds nothing where there is no schema', () => {
    expect(unknownKeys(undefined, { a: 1 })).toEqual([])
  })

  test('is not fooled by the keys that every object has', () => {
    expect(pathsOf(inner, JSON.parse('{ "constructor": 1, "__proto__": 2 }'))).toEqual([
      'constructor',
      '__proto__',
    ])
  })
})

describe('nearest', () => {
  test.each([
    ['maxStep', ['model', 'maxSteps'], 'maxSteps'],
    ['MAXSTEPS', ['model', 'maxSteps'], 'maxSteps'],
    ['xyz', ['model', 'maxSteps'], undefined],
    ['a', [], undefined],
    ['confg', ['config', 'group'], 'config'],
  ])('of %s in %j is %s', (word, candidates, found) => {
    expect(nearest(word, candidates)).toBe(found)
  })
})
