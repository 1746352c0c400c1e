import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Tool, ToolError, type ToolScope, ToolTable } from '../src/index.ts'
import { createAgent, createTool } from './helpers.ts'

function tableWith(...tools: Tool[]): ToolTable {
  const table = new ToolTable()
  for (const tool of tools) table.add(tool)
  return table
}

const named = (...names: string[]): Tool[] => names.map((name) => createTool({ name }))

const only = (...names: string[]): ToolScope => ({ allows: (name) => names.includes(name) })

const namesOf = (tools: readonly { readonly name: string }[]): string[] =>
  tools.map(({ name }) => name)

describe('ToolTable.add', () => {
  test.each(['a', 'read_file', 'web-search', 'A1', 'x'.repeat(64)])(
    'takes the name "%s"',
    (name) => {
      const table = tableWith(...named(name))

      expect(table.has(name)).toBe(true)
      expect(table.names()).toEqual([name])
    },
  )

  test.each(['', 'two words', 'a.b', 'é', 'a\n', 'x'.repeat(65)])(
    'refuses the name "%s"',
    (name) => {
      const table = new ToolTable()

      const add = (): void => table.add(createTool({ name }))

      expect(add).toThrow(ToolError)
      expect(add).toThrow(expect.objectContaining({ code: 'INVALID_TOOL' }))
      expect(add).toThrow(`tool name "${name}" must match`)
      expect(table.names()).toEqual([])
    },
  )

  test('refuses a second tool with the same name, and keeps the first', () => {
    const first = createTool()
    const table = tableWith(first)

    expect(() => table.add(createTool())).toThrow(
      new ToolError('DUPLICATE_TOOL', 'tool "echo" is already registered'),
    )
    expect(table.lookup(createAgent(), 'echo')).toEqual({ kind: 'found', tool: first })
  })

  test.each([
    ['a type that JSON Schema lacks', z.object({ when: z.date() })],
    ['something that is no zod object', { type: 'object' } as unknown as z.ZodObject],
  ])('refuses parameters with %s, and names the tool', (_, parameters) => {
    const table = new ToolTable()

    const add = (): void => table.add(createTool({ parameters }))

    expect(add).toThrow(expect.objectContaining({ code: 'INVALID_TOOL' }))
    expect(add).toThrow('tool "echo" has no JSON Schema: ')
    expect(table.names()).toEqual([])
  })
})

describe('ToolTable.schemas', () => {
  test('tell a model the exact name, description and parameters', () => {
    const parameters = z.object({
      path: z.string().describe('absolute path'),
      limit: z.number().int().min(1).max(10).default(5),
      mode: z.enum(['text', 'binary']).optional(),
    })
    const table = tableWith(createTool({ name: 'read', description: 'reads', parameters }))

    const schemas = table.schemas(createAgent())

    expect(schemas).toStrictEqual([
      {
        name: 'read',
        description: 'reads',
        parameters: {
          type: 'object',
          properties: {
            path: { type: 'string', description: 'absolute path' },
            limit: { type: 'integer', minimum: 1, maximum: 10, default: 5 },
            mode: { type: 'string', enum: ['text', 'binary'] },
          },
          required: ['path'],
        },
      },
    ])
  })

  test('are well-formed, whatever a tool says of itself', () => {
    const parameters = z.object({ path: z.string().describe('half \uD83D') })
    const table = tableWith(createTool({ description: 'cut \uD83D', parameters }))

    const told = JSON.stringify(table.schemas(createAgent()))

    expect(told).toContain('cut \uFFFD')
    expect(told).toContain('half \uFFFD')
    expect(told).not.toMatch(/\\ud83d/i)
  })

  test('take the schema that a tool brings along', () => {
    const inputSchema = { type: 'object', properties: { any: { type: 'string' } } }
    const table = tableWith(createTool({ inputSchema, parameters: z.looseObject({}) }))

    expect(table.schemas(createAgent())[0]?.parameters).toStrictEqual(inputSchema)
  })

  test('cannot be changed by whoever reads them', () => {
    const [schema] = tableWith(createTool()).schemas(createAgent())

    expect(Object.isFrozen(schema)).toBe(true)
    expect(Object.isFrozen(schema?.parameters['properties'])).toBe(true)
  })

  test('do not depend on the order of registration', () => {
    const forth = tableWith(...named('a', 'b', 'c'))
    const back = tableWith(...named('c', 'b', 'a'))

    expect(namesOf(forth.schemas(createAgent()))).toEqual(['a', 'b', 'c'])
    expect(back.schemas(createAgent())).toEqual(forth.schemas(createAgent()))
  })

  test('are the same array until the tools change', () => {
    const table = tableWith(...named('a'))
    const scoped = createAgent(only('a', 'b'))
    const before = [table.schemas(createAgent()), table.schemas(scoped)]
    const again = [table.schemas(createAgent()), table.schemas(scoped)]
    const added = createTool({ name: 'b' })

    table.add(added)
    const after = table.schemas(scoped)
    table.remove(added)

    expect(again[0]).toBe(before[0])
    expect(again[1]).toBe(before[1])
    expect(namesOf(after)).toEqual(['a', 'b'])
    expect(namesOf(table.schemas(scoped))).toEqual(['a'])
    expect(table.schemas(scoped)[0]).toBe(before[1]?.[0])
  })
})

describe('ToolTable scope', () => {
  test.each<[string, ToolScope | undefined, string[]]>([
    ['all tools without a scope', undefined, ['a', 'b', 'c']],
    ['the allowed ones', only('a', 'c'), ['a', 'c']],
    ['none when nothing is allowed', only(), []],
    ['its own ones besides', { ...only('a'), own: named('mine') }, ['a', 'mine']],
    ['its own ones though they are not allowed', { ...only(), own: named('b') }, ['b']],
    [
      'its own one instead of the registered one of that name',
      { ...only('a', 'b', 'c'), own: named('b') },
      ['a', 'b', 'c'],
    ],
  ])('lets an agent see and run by one rule: %s', (_, scope, expected) => {
    const table = tableWith(...named('a', 'b', 'c'))
    const agent = createAgent(scope)

    const visible = namesOf(table.visible(agent))
    const executable = ['a', 'b', 'c', 'mine'].filter(
      (name) => table.lookup(agent, name).kind === 'found',
    )

    expect(visible.toSorted()).toEqual(expected)
    expect(namesOf(table.schemas(agent))).toEqual(expected)
    expect(executable).toEqual(expected)
  })

  test('prefers the own tool of an agent', () => {
    const own = createTool({ description: 'mine' })
    const table = tableWith(createTool({ description: 'of all' }))
    const agent = createAgent({ allows: () => true, own: [own] })

    expect(table.lookup(agent, 'echo')).toEqual({ kind: 'found', tool: own })
    expect(table.visible(agent)).toEqual([own])
  })

  test('is asked of tools that come later', () => {
    const table = tableWith(...named('a'))
    const agent = createAgent({ allows: (name) => name !== 'late' })
    expect(table.lookup(agent, 'late')).toEqual({ kind: 'unknown' })

    table.add(createTool({ name: 'late' }))

    expect(table.lookup(agent, 'late')).toEqual({ kind: 'denied' })
    expect(namesOf(table.schemas(agent))).toEqual(['a'])
  })
})
