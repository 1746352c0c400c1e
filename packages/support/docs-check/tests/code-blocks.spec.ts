/** Every code block of the docs is compiled, loaded or checked. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Context } from '@deepseek-ai/cordis'
import { bootYml } from '@deepseek-ai/dsh-testkit'
import { afterAll, describe, expect, test } from 'vitest'
import { type CodeBlock, placeOf, readBlocks } from '../src/blocks/blocks.ts'
import { checkPrograms, openWorkspace } from '../src/compiler.ts'
import { pluginOf, type Schema } from '../src/catalog/config-keys.ts'
import { problemsOfSh, type Shell } from '../src/blocks/sh.ts'
import { exportsOf, isType, isValue } from '../src/syntax.ts'
import { type Home, moduleOf } from '../src/blocks/ts.ts'
import { entryOf, readManifest, readWorkspace, root } from '../src/workspace.ts'
import { problemsOfYml } from '../src/blocks/yml.ts'

/** Blocks without a checker, by their first line, with the reason. */
const unchecked: Readonly<Record<string, string>> = {
  '$ dsh cordis.demo.yml -p "The tests fail. Find out why and fix it."':
    'what the demo prints; its own test runs it',
  '> read the changelog and tell me what is new': 'what a terminal shows',
  'dsh cordis.yml                                 the front end of the yml, until it ends':
    'a table of commands and what they give',
  [`request() { printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\\n' "$@"; }`]:
    'talks to a program of the reader; its syntax alone is checked',
}
/** Plugins of cordis that the docs name. */
const cordisPlugins = ['@deepseek-ai/cordis-plugin-hmr', '@deepseek-ai/cordis-plugin-timer']
/** Programs that are not ours. */
const foreign = new Set(['acpx@0.19.1', 'git'])

const blocks = readBlocks(
  'README.md',
  'docs/**/*.md',
  'packages/*/*/README.md',
  'examples/*/README.md',
  'bench/README.md',
).filter(({ file }) => !file.startsWith('docs/data-structures/'))
const of = (...languages: readonly string[]): CodeBlock[] =>
  blocks.filter(({ language }) => languages.includes(language))
const packages = readWorkspace()
const open = openWorkspace()
afterAll(() => open[Symbol.dispose]())

describe('the code blocks', () => {
  test('are in languages that are checked, or are listed with the reason', () => {
    const checked = new Set(['ts', 'yaml', 'yml', 'sh', 'json'])
    const others = blocks.filter(({ language }) => !checked.has(language))
    const lines = blocks.map(firstLineOf)

    expect(others.map(firstLineOf).filter((line) => !Object.hasOwn(unchecked, line))).toEqual([])
    expect(Object.keys(unchecked).filter((line) => !lines.includes(line))).toEqual([])
  })

  test('in TypeScript compile', () => {
    const files = Object.fromEntries(
      of('ts').map((block) => [nameOf(block), moduleOf(block, homeOf(block))]),
    )
    const published = packages.filter(({ manifest }) => manifest.exports !== undefined)
    const augmentations = published.map(({ name }) => `import type {} from '${name}'`).join('\n')

    const problems = checkPrograms([{ ...files, 'augmentations.ts': augmentations }])

    expect(problems.size).toBe(of('ts').length + 1)
    expect(Object.fromEntries([...problems].filter(([, found]) => found.length > 0))).toEqual({})
  })

  test.each(entryLists().map((block) => [placeOf(block), block] as const))(
    'in YAML name plugins and fit their schemas: %s',
    async (_, { text }) => {
      expect(await problemsOfYml(text, findPlugin)).toEqual([])
    },
  )

  test.each(playbooks().map((block) => [placeOf(block), block] as const))(
    'that are playbooks load: %s',
    async (_, { text }) => {
      const ctx = await bootYml(
        `- name: '@deepseek-ai/dsh-llm'\n- name: '@deepseek-ai/dsh-llm-scripted'\n  config: { playbook: ./playbook.yml }\n`,
        { files: { 'playbook.yml': text } },
      )

      expect(ctx.llm.models()).toHaveLength(1)
    },
  )

  test.each(withModules().map((item) => [placeOf(item.block), item] as const))(
    'in YAML load with the modules of their page: %s',
    async (_, { block, files }) => {
      const core = `- name: '@deepseek-ai/dsh-agent-core'\n`
      const isComplete = /dsh-(agent-core|llm)'/.test(block.text)

      const ctx = await bootYml(`${isComplete ? '' : core}${block.text}`, { files })

      expect(activeEntries(ctx)).toEqual(
        expect.arrayContaining(Object.keys(files).map((name) => `./${name}`)),
      )
    },
  )

  test('of the guide to backends make an agent that asks the oracle', async () => {
    const guide = withModules().find(({ block }) => block.file.endsWith('add-a-backend.md'))
    const ctx = await bootYml(guide?.block.text ?? '', { files: guide?.files ?? {} })
    const { agent } = ctx.agents.create({ cwd: '/' })

    const end = await agent.send('which way?')

    expect(end).toEqual({ reason: 'completed' })
    expect(JSON.stringify(agent.session.deriveMessages().at(-1))).toContain('you asked: which way?')
  })

  test.each(of('sh').map((block) => [placeOf(block), block] as const))(
    'for the shell use what there is: %s',
    (_, block) => {
      const isForeign = Object.hasOwn(unchecked, firstLineOf(block))

      execFileSync('sh', ['-n'], { input: block.text })
      expect(isForeign ? [] : problemsOfSh(block, shell())).toEqual([])
    },
  )

  test.each(of('json').map((block) => [placeOf(block), block] as const))(
    'in JSON can be read: %s',
    (_, { text }) => {
      expect(() => JSON.parse(text) as unknown).not.toThrow()
    },
  )
})

function firstLineOf({ text }: CodeBlock): string {
  return text.split('\n', 1)[0] ?? ''
}

function nameOf({ file, line }: CodeBlock): string {
  return `${file.replaceAll('/', '.')}.${line}.ts`
}

function homeOf({ file }: CodeBlock): Home | undefined {
  const item = packages.find(({ folder }) => file === `${folder}/README.md`)
  if (item?.manifest.exports === undefined) return undefined
  const exports = [...exportsOf(open.project, entryOf(item))]
  return {
    name: item.name,
    types: new Set(exports.filter(([, symbol]) => isType(symbol)).map(([name]) => name)),
    values: new Set(exports.filter(([, symbol]) => isValue(symbol)).map(([name]) => name)),
  }
}

function isPlaybook({ text }: CodeBlock): boolean {
  return text.startsWith('# playbook.yml')
}

function playbooks(): CodeBlock[] {
  return of('yaml', 'yml').filter(isPlaybook)
}

function entryLists(): CodeBlock[] {
  return of('yaml', 'yml').filter((block) => !isPlaybook(block))
}

interface WithModules {
  readonly block: CodeBlock
  readonly files: Readonly<Record<string, string>>
}

/** The lists of entries that name a file, and the module that their page shows before them. */
function withModules(): WithModules[] {
  return entryLists().flatMap((block) => {
    const [, file] = /^- name: \.\/(\S+\.ts)$/m.exec(block.text) ?? []
    const shown = of('ts').findLast(
      (other) =>
        other.file === block.file &&
        other.line < block.line &&
        /^export function apply/m.test(other.text),
    )
    if (file === undefined || shown === undefined) return []
    return { block, files: { [file]: moduleOf(shown, homeOf(shown)) } }
  })
}

/** The entries that run: one that waits for a service is not among them. */
function activeEntries({ loader }: Context): string[] {
  const running = [...loader.entries()].filter(({ fiber }) => {
    const state: number = fiber?.state ?? 0
    return state > 0
  })
  return running.map(({ options }) => options.name)
}

async function findPlugin(name: string): Promise<{ schema: Schema | undefined } | undefined> {
  const item = packages.find((candidate) => candidate.name === name)
  if (item !== undefined) return item.manifest.exports === undefined ? undefined : pluginOf(item)
  if (!cordisPlugins.includes(name)) return undefined
  const { default: plugin } = (await import(name)) as { default?: { Config?: Schema } }
  return { schema: plugin?.Config }
}

let known: Shell | undefined
function shell(): Shell {
  const args = [join(root, 'packages/app/dsh/src/bin.ts'), '--help']
  known ??= {
    manifest: readManifest('.'),
    options: new Set(
      execFileSync(process.execPath, args, { encoding: 'utf8' }).match(/--?[a-z]+/g),
    ),
    foreign,
  }
  return known
}
