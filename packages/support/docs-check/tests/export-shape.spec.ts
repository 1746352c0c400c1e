/** What the Loader makes of the exports of every plugin, of ours and of the examples. */
import { relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bootYml, testContext } from '@deepseek-ai/dsh-testkit'
import Loader from '@deepseek-ai/cordis-plugin-loader'
import { describe, expect, test } from 'vitest'
import { entryOf, filesOf, readWorkspace, root } from '../src/workspace.ts'

interface Module {
  readonly default?: unknown
  readonly apply?: unknown
  readonly inject?: unknown
  readonly Config?: unknown
}

const modules = await readModules()
const functions = modules.filter(({ exported }) => typeof exported.apply === 'function')
const services = modules.filter(({ exported }) => typeof exported.default === 'function')

describe('a function plugin', () => {
  test.each(functions)(
    'keeps its exports when the Loader unwraps them: $path',
    async ({ exported }) => {
      const ctx = testContext()
      await ctx.plugin(Loader)

      const plugin = ctx.loader.unwrapExports(exported) as Module

      expect(Object.keys(exported)).not.toContain('default')
      expect(plugin.apply).toBe(exported.apply)
      expect(plugin.inject).toBe(exported.inject)
      expect(plugin.Config).toBe(exported.Config)
    },
  )

  test('that also has a default export runs before the services that it asks for', async () => {
    const source = `
      export const inject = ['tools']
      export function apply(ctx) {
        globalThis.dshSeen = ctx.get('tools') === undefined ? 'too early' : 'in time'
      }
    `
    const yml = `- name: ./greeter.js\n`

    await bootYml(yml, { files: { 'greeter.js': source } })
    const seenWithout = take()
    await bootYml(yml, { files: { 'greeter.js': `${source}\nexport default { apply }\n` } })

    expect(seenWithout).toBeUndefined()
    expect(take()).toBe('too early')
  })
})

describe('a service', () => {
  test.each(services)('is the one plugin of its package: $path', ({ exported }) => {
    expect(exported.apply).toBeUndefined()
  })
})

test('there are plugins of both kinds', () => {
  expect(functions.length).toBeGreaterThan(15)
  expect(services.length).toBeGreaterThan(5)
})

function take(): unknown {
  const seen: unknown = Reflect.get(globalThis, 'dshSeen')
  Reflect.deleteProperty(globalThis, 'dshSeen')
  return seen
}

/** The entry modules of the packages, and the modules beside the yml files of the examples. */
async function readModules(): Promise<{ path: string; exported: Module }[]> {
  const workspace = readWorkspace()
  const entries = workspace.filter(({ manifest }) => manifest.exports !== undefined).map(entryOf)
  const beside = workspace
    .filter(({ group }) => group === 'examples')
    .flatMap(({ folder }) => filesOf(folder, '*.ts'))
    .filter((path) => !path.endsWith('/demo.ts'))
  return Promise.all(
    [...entries, ...beside].map(async (path) => ({
      path: relative(root, path),
      exported: (await import(pathToFileURL(path).href)) as Module,
    })),
  )
}
