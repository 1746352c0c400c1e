/** The declarations on the pages of docs/data-structures are those of the source. */
import { basename } from 'node:path'
import { isTypeReferenceNode } from 'typescript/unstable/ast'
import { afterAll, describe, expect, test } from 'vitest'
import { readBlocks } from '../src/blocks/blocks.ts'
import { checkPrograms, openWorkspace } from '../src/compiler.ts'
import { declaredIn, eventsIn, type Origin, proofOf } from '../src/blocks/declarations.ts'
import { eventsOf } from '../src/catalog/events.ts'
import { declarationOf, exportsOf, isType, nodesOf } from '../src/syntax.ts'
import { entryOf, readWorkspace } from '../src/workspace.ts'

/** Which package each page documents. */
const homes: Readonly<Record<string, string>> = {
  'content.md': '@deepseek-ai/dsh-llm',
  'session-log.md': '@deepseek-ai/dsh-session',
  'subagent.md': '@deepseek-ai/dsh-subagent',
  'tools.md': '@deepseek-ai/dsh-tools',
}
const blocks = readBlocks('docs/data-structures/*.md').filter(({ language }) => language === 'ts')
const packages = new Map(readWorkspace().map((item) => [item.name, item]))
const open = openWorkspace()
afterAll(() => open[Symbol.dispose]())
const { project } = open

describe('docs/data-structures', () => {
  const pages = Object.groupBy(blocks, ({ file }) => basename(file))

  test('every page has its package', () => {
    expect(Object.keys(pages).toSorted()).toEqual(Object.keys(homes).toSorted())
  })

  test('every declaration is the one of the source', () => {
    const exports = exportedNames()
    const programs = Object.entries(pages).map(([page, items = []]) => {
      const origin: Origin = { home: homes[page] ?? '', exports }
      return Object.fromEntries(
        items.map((block) => [`${page}.${block.line}.ts`, proofOf(block, origin)]),
      )
    })

    const problems = checkPrograms(programs)

    expect(problems.size).toBe(blocks.length)
    expect(Object.fromEntries([...problems].filter(([, found]) => found.length > 0))).toEqual({})
  })

  test.each(['subagent', 'session', 'tools'])('every exported type of %s has its place', (name) => {
    const home = `@deepseek-ai/dsh-${name}`
    const types = typesOf(home)

    expect(types.length).toBeGreaterThan(10)
    expect(types.filter((type) => !documented(home).includes(type))).toEqual([])
  })

  test.each(['subagent', 'session', 'tools'])('every event of %s has its place', (name) => {
    const home = `@deepseek-ai/dsh-${name}`
    const item = packages.get(home)
    const events = item === undefined ? [] : eventsOf(project, item).map((event) => event.name)
    const told = pageBlocks(home).flatMap(eventsIn)

    expect(events.length).toBeGreaterThan(1)
    expect(told.toSorted()).toEqual(events.toSorted())
  })

  test('every type of content that a log can hold has its place', () => {
    const held = reachable('@deepseek-ai/dsh-session', 'SessionEventData', '@deepseek-ai/dsh-llm')

    expect(held).toContain('ToolCallBlock')
    expect(held.filter((type) => !documented('@deepseek-ai/dsh-llm').includes(type))).toEqual([])
  })
})

function pageBlocks(home: string): typeof blocks {
  return blocks.filter(({ file }) => homes[basename(file)] === home)
}

function documented(home: string): string[] {
  return pageBlocks(home).flatMap((block) => declaredIn(block).map(({ name }) => name))
}

function exportsOfPackage(name: string): ReturnType<typeof exportsOf> {
  const item = packages.get(name)
  if (item === undefined) throw new Error(`no package "${name}"`)
  return exportsOf(project, entryOf(item))
}

function typesOf(name: string): string[] {
  return [...exportsOfPackage(name)].filter(([, symbol]) => isType(symbol)).map(([type]) => type)
}

function exportedNames(): Map<string, ReadonlySet<string>> {
  const names = [...Object.values(homes), '@deepseek-ai/dsh-agent']
  return new Map<string, ReadonlySet<string>>([
    ...names.map((name) => [name, new Set(typesOf(name))] as const),
    ['@deepseek-ai/cordis', new Set(['Context', 'Service'])],
    ['zod', new Set(['z'])],
  ])
}

/** The types of one package that a type of another one refers to, directly or through others. */
function reachable(from: string, type: string, wanted: string): string[] {
  const pool = new Map([...exportsOfPackage(wanted), ...exportsOfPackage(from)])
  const seen = new Set<string>()
  const visit = (name: string): void => {
    const symbol = pool.get(name)
    const declaration = symbol && declarationOf(project, symbol)
    if (declaration === undefined || seen.has(name)) return
    seen.add(name)
    for (const node of nodesOf(declaration)) {
      if (isTypeReferenceNode(node)) visit(node.typeName.getText())
    }
  }
  visit(type)
  return [...seen].filter((name) => typesOf(wanted).includes(name))
}
