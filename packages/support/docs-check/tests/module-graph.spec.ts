/** The drawing of the packages is what their manifests give. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { floors } from '../src/graph/floor-plan.ts'
import { reducedEdges, renderModuleGraph } from '../src/graph/module-graph.ts'
import { readWorkspace, root, type WorkspacePackage } from '../src/workspace.ts'

describe('docs/module-graph.svg', () => {
  test('is what "pnpm generate" draws', () => {
    const drawn = readFileSync(join(root, 'docs/module-graph.svg'), 'utf8')

    const fresh = renderModuleGraph(readWorkspace())

    expect(drawn === fresh, 'docs/module-graph.svg is stale: run "pnpm generate"').toBe(true)
  })

  test('shows every published package', () => {
    const drawing = renderModuleGraph(readWorkspace())

    expect(floors.flat().filter((name) => !drawing.includes(`>${name}</text>`))).toEqual([])
  })

  test('refuses a package without a floor', () => {
    const packages = [createPackage('newcomer', ['llm']), createPackage('llm', [])]

    expect(() => renderModuleGraph(packages)).toThrow('package "newcomer" has no floor')
  })

  test('leaves out what other arrows imply, and nothing else', () => {
    const packages = [
      createPackage('dsh', ['app', 'llm', 'session']),
      createPackage('app', ['session']),
      createPackage('session', ['llm']),
      createPackage('llm', []),
    ]

    expect(reducedEdges(packages)).toEqual([
      ['dsh', 'app'],
      ['app', 'session'],
      ['session', 'llm'],
    ])
  })
})

function createPackage(shortName: string, needs: readonly string[]): WorkspacePackage {
  const dependencies = Object.fromEntries(needs.map((name) => [`@x/${name}`, 'workspace:^']))
  const name = `@x/${shortName}`
  return {
    name,
    shortName,
    group: 'core',
    folder: `packages/core/${shortName}`,
    manifest: { name, dependencies },
  }
}
