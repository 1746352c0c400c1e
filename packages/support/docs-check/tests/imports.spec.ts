/** Packages import what they declare, declare what they import, and only downwards. */
import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { openWorkspace } from '../src/compiler.ts'
import { floorOf, floors, objectionTo } from '../src/graph/floor-plan.ts'
import { importsOf, type PackageImport } from '../src/imports.ts'
import { filesOf, readManifest, readWorkspace, type WorkspacePackage } from '../src/workspace.ts'

const open = openWorkspace()
afterAll(() => open[Symbol.dispose]())
const packages = readWorkspace()
const byName = new Map(packages.map((item) => [item.name, item]))
const published = packages.filter(({ manifest }) => manifest.private !== true)
const keysOf = (record: Readonly<Record<string, string>> = {}): string[] => Object.keys(record)
/** What every test may import, because the root declares it. */
const shared = keysOf(readManifest('.').devDependencies)

/** Dependencies that no file of the package names, with the reason. */
const unnamed: Readonly<Record<string, string>> = {
  '@deepseek-ai/dsh-testkit': 'bootYml lets every yml of a test name every package',
}

describe('the floor plan', () => {
  test('has every published package once', () => {
    const names = published.map(({ shortName }) => shortName)

    expect(floors.flat().toSorted(), 'a new package needs a floor in graph/floor-plan.ts').toEqual(
      names.toSorted(),
    )
  })

  test('lets sources import downwards only', () => {
    const objections = published.flatMap((from) =>
      sourceImports(from).flatMap(({ name, file }) => {
        const to = byName.get(name)
        const objection = to && objectionTo(from, to)
        return objection === undefined ? [] : [`${file}: ${objection}`]
      }),
    )

    expect(objections).toEqual([])
  })

  test('keeps the backends and the tool of the subagent seam apart, but for fork and its driver', () => {
    const family = published.filter(({ group }) => group === 'subagent')
    const pairs = family.flatMap((from) =>
      sourceImports(from)
        .map(({ name }) => byName.get(name))
        .filter((to) => to?.group === 'subagent' && to.shortName !== 'subagent')
        .map((to) => `${from.shortName} -> ${to?.shortName}`),
    )

    expect([...new Set(pairs)]).toEqual(['subagent-fork -> subagent-spawn'])
  })

  test('objects to an import from above, from the side, and of what only tests use', () => {
    const objections = [
      objectionTo(named('llm'), named('session')),
      objectionTo(named('tool-bash'), named('subagent')),
      objectionTo(named('subagent-acp'), named('subagent-spawn')),
      objectionTo(named('dsh'), named('subagent-mock')),
      objectionTo(named('dsh'), named('testkit')),
    ]

    expect(objections.every((objection) => objection !== undefined)).toBe(true)
    expect(floorOf(named('testkit'))).toBeUndefined()
  })
})

describe('the packages', () => {
  test('have no cycle among their dependencies, those of tests included', () => {
    expect(cycleIn(packages)).toBeUndefined()
  })

  test.each(packages)('$shortName declares what it imports', (item) => {
    const { dependencies, devDependencies, peerDependencies } = item.manifest
    const isForTests = item.manifest.private === true && item.folder.startsWith('packages/')
    const own = [
      ...keysOf(dependencies),
      ...keysOf(peerDependencies),
      ...(isForTests ? shared : []),
    ]
    const forTests = [...own, ...keysOf(devDependencies), ...shared]
    const missing = [
      ...sourceImports(item).filter(({ name }) => !own.includes(name)),
      ...testImports(item).filter(({ name }) => !forTests.includes(name)),
    ]

    expect(missing).toEqual([])
  })

  test.each(packages)('$shortName uses what it declares', (item) => {
    const unused = unusedOf(item)

    expect(unused).toEqual(item.name in unnamed ? unused : [])
  })

  test('are excused only where there is something to excuse', () => {
    const excused = packages.filter(({ name }) => name in unnamed)

    expect(excused.filter((item) => unusedOf(item).length === 0)).toEqual([])
  })
})

/** Dependencies that neither the package nor what it depends on has a use for. */
function unusedOf(item: WorkspacePackage): string[] {
  const { dependencies, devDependencies, peerDependencies } = item.manifest
  const imported = new Set(sourceImports(item).map(({ name }) => name))
  const isProgram = item.manifest.private === true
  const peers = new Set([...keysOf(peerDependencies), ...peersBehind(item)])
  const texts = filesOf(item.folder, '**/*.{ts,mts,yml}').map((path) => readFileSync(path, 'utf8'))
  const isNamed = (name: string): boolean =>
    texts.some((text) => text.includes(`'${name}'`) || text.includes(`'${name}/`))
  return [
    ...keysOf(dependencies).filter((name) => !imported.has(name) && !(isProgram && isNamed(name))),
    ...keysOf(devDependencies).filter((name) => !isNamed(name.replace(/^@types\//, ''))),
  ].filter((name) => !peers.has(name))
}

const named = (name: string): WorkspacePackage =>
  packages.find(({ shortName }) => shortName === name) as WorkspacePackage

function sourceImports(item: WorkspacePackage): PackageImport[] {
  return item.folder.startsWith('packages/')
    ? importsOf(open.project, item, 'src/**/*.ts')
    : importsOf(open.project, item, '*.ts', 'src/**/*.ts')
}

function testImports(item: WorkspacePackage): PackageImport[] {
  return importsOf(open.project, item, 'tests/**/*.ts')
}

/** What the dependencies of a package want to find beside them. */
function peersBehind({ folder, manifest }: WorkspacePackage): string[] {
  const { dependencies, devDependencies } = manifest
  return [...keysOf(dependencies), ...keysOf(devDependencies)].flatMap((name) =>
    keysOf(readManifest(`${folder}/node_modules/${name}`).peerDependencies),
  )
}

/** The names along one cycle; absent when there is none. */
function cycleIn(items: readonly WorkspacePackage[]): string[] | undefined {
  const finished = new Set<string>()
  const visit = (name: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name]
    const manifest = byName.get(name)?.manifest
    if (manifest === undefined || finished.has(name)) return undefined
    const next = [...keysOf(manifest.dependencies), ...keysOf(manifest.devDependencies)]
    for (const dependency of next) {
      const cycle = visit(dependency, [...path, name])
      if (cycle !== undefined) return cycle
    }
    finished.add(name)
    return undefined
  }
  for (const { name } of items) {
    const cycle = visit(name, [])
    if (cycle !== undefined) return cycle
  }
  return undefined
}
