/** The tables that people write by hand name what there is. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { openWorkspace } from '../src/compiler.ts'
import { pluginOf } from '../src/catalog/config-keys.ts'
import { exportsOf } from '../src/syntax.ts'
import { entryOf, readWorkspace, root, type WorkspacePackage } from '../src/workspace.ts'

/** An error code, or a variable of the environment. */
const screaming = /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g

const open = openWorkspace()
afterAll(() => open[Symbol.dispose]())
const { project } = open
const published = readWorkspace().filter(({ manifest }) => manifest.private !== true)
const loaded = await Promise.all(
  published.map(async (item) => ({ item, plugin: await pluginOf(item) })),
)
const plugins = loaded.flatMap(({ item, plugin }) =>
  plugin === undefined ? [] : { item, schema: plugin.schema },
)

describe('the README of a package', () => {
  const packages = readWorkspace().filter(({ folder }) => folder.startsWith('packages/'))

  test.each(packages)('has its title and its four parts: $shortName', ({ folder, name }) => {
    const text = readFileSync(join(root, folder, 'README.md'), 'utf8')
    const titles = Array.from(text.matchAll(/^#+ [@A-Z].*$/gm), ([title]) => title)

    expect(titles).toEqual([`# ${name}`, '## Use', '## Config', '## Contract', '## Limits'])
  })

  test.each(plugins)(
    'names every config key, and no other: $item.shortName',
    ({ item, schema }) => {
      const keys = Object.keys(schema?.dict ?? {})

      expect([...configTable(item).keys()].toSorted()).toEqual(keys.toSorted())
    },
  )

  test.each(plugins)('gives the defaults that are numbers: $item.shortName', ({ item, schema }) => {
    const table = configTable(item)
    const real = Object.entries(schema?.dict ?? {}).flatMap(([key, { meta }]) =>
      typeof meta?.default === 'number' ? [[key, meta.default]] : [],
    )

    expect(real.map(([key]) => [key, Number(table.get(String(key)))])).toEqual(real)
  })
})

describe('docs/session-log.md', () => {
  const text = readFileSync(join(root, 'docs/session-log.md'), 'utf8')

  test('names every event and its data', () => {
    const told = rowsOf(sectionOf(text, 'Events')).map(([type = '', data = '']) => [
      ...namesIn(type),
      namesIn(data).toSorted(),
    ])
    const real = membersOf('SessionEventData').map((name) => [name, dataOf(name).toSorted()])

    expect(told).toEqual(real)
  })

  test('names every field of the header', () => {
    const told = rowsOf(sectionOf(text, 'Header')).flatMap(([field = '']) => namesIn(field))

    expect(told).toEqual(membersOf('SessionHeader'))
  })
})

describe('the docs', () => {
  /** Variables of programs that are not ours. */
  const foreign = ['ANTHROPIC_BASE_URL', 'GOOGLE_GEMINI_BASE_URL', 'IS_SANDBOX', 'NO_COLOR']

  test('name no code and no variable that the sources do not have', () => {
    const sources = globSync(['packages/*/*/src/**/*.ts', 'examples/*/*.{ts,yml}'], { cwd: root })
    const known = new Set(
      sources.flatMap((file) => readFileSync(join(root, file), 'utf8').match(screaming)),
    )
    const pages = globSync(['*.md', 'docs/**/*.md', 'packages/*/*/README.md'], { cwd: root })
    const unknown = pages.flatMap((page) =>
      namesIn(readFileSync(join(root, page), 'utf8'))
        .filter((name) => name.match(screaming)?.[0] === name)
        .filter((name) => !known.has(name) && !foreign.includes(name))
        .map((name) => `${page}: ${name}`),
    )

    expect(pages.length).toBeGreaterThan(30)
    expect(unknown).toEqual([])
  })
})

/** The first table under "Config": the defaults, without what only makes them readable, by key. */
function configTable({ folder }: WorkspacePackage): Map<string, string> {
  const path = join(root, folder, 'README.md')
  const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const [table = ''] = /^\|[^]*?(?=\n\n|$(?![^]))/m.exec(sectionOf(text, 'Config')) ?? []
  const rows = rowsOf(table).flatMap(([key = '', value = '']) =>
    namesIn(key).map((name) => [name, value.replaceAll(/[`,]/g, '').trim()] as const),
  )
  return new Map(rows.filter(([name]) => !name.includes('.')))
}

function sectionOf(text: string, title: string): string {
  return text.split(/^## /m).find((section) => section.startsWith(`${title}\n`)) ?? ''
}

const isRule = (line = ''): boolean => /^\|[\s|:-]+\|$/.test(line)

/** The cells of the rows of all tables, without the heads. */
function rowsOf(section: string): string[][] {
  const lines = section.split('\n').filter((line) => line.startsWith('|'))
  return lines
    .filter((line, index) => !isRule(line) && !isRule(lines[index + 1]))
    .map((line) => line.slice(1, -1).split(/(?<!\\)\|/))
}

/** What stands in backticks. */
function namesIn(cell: string): string[] {
  return Array.from(cell.matchAll(/`([^`\n]+)`/g), ([, name = '']) => name)
}

function membersOf(type: string): string[] {
  return typeOf(type).map(({ name }) => name)
}

function typeOf(type: string): ReturnType<typeof project.checker.getPropertiesOfType> {
  const session = published.find(({ shortName }) => shortName === 'session') as WorkspacePackage
  const symbol = exportsOf(project, entryOf(session)).get(type)
  if (symbol === undefined) throw new Error(`no type "${type}"`)
  const { checker } = project
  return checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
}

function dataOf(event: string): string[] {
  const { checker } = project
  const member = typeOf('SessionEventData').find(({ name }) => name === event)
  const data = member && checker.getTypeOfSymbol(member)
  return data === undefined ? [] : checker.getPropertiesOfType(data).map(({ name }) => name)
}
