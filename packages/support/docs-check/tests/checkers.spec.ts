/** The checkers find what is wrong. */
import { describe, expect, test } from 'vitest'
import { blocksOf, type CodeBlock } from '../src/blocks/blocks.ts'
import { checkPrograms } from '../src/compiler.ts'
import type { Schema } from '../src/catalog/config-keys.ts'
import { type Origin, proofOf } from '../src/blocks/declarations.ts'
import { problemsOfSh, type Shell } from '../src/blocks/sh.ts'
import { moduleOf } from '../src/blocks/ts.ts'
import { problemsOfYml } from '../src/blocks/yml.ts'

describe('blocksOf', () => {
  test('gives language, text, line and what the reader knows, also within a list', () => {
    const page = [
      '# Page',
      '<!-- given: declare const run: number -->',
      '',
      '```ts',
      'run.toFixed()',
      '```',
      '- item',
      '  ```sh',
      '  pnpm test',
      '  ls',
      '  ```',
      '',
    ].join('\n')

    expect(blocksOf('a.md', page)).toEqual([
      {
        file: 'a.md',
        line: 4,
        language: 'ts',
        text: 'run.toFixed()\n',
        given: 'declare const run: number',
      },
      { file: 'a.md', line: 8, language: 'sh', text: 'pnpm test\nls\n', given: '' },
    ])
  })
})

describe('proofOf', () => {
  const usage = [
    'export interface Usage {',
    '  readonly inputTokens: number',
    '  readonly outputTokens: number',
    '  readonly cachedInputTokens?: number',
    '  readonly reasoningTokens?: number',
    '}',
  ].join('\n')
  const origin: Origin = { home: '@deepseek-ai/dsh-llm', exports: new Map() }

  test('lets no declaration pass that differs in any part', () => {
    const variants = {
      same: usage,
      short: usage.replace('  readonly reasoningTokens?: number\n', ''),
      retyped: usage.replace('outputTokens: number', 'outputTokens: string'),
      optional: usage.replace('outputTokens:', 'outputTokens?:'),
      writable: usage.replace('readonly outputTokens', 'outputTokens'),
      renamed: usage.replace('interface Usage', 'interface Uses'),
    }

    const faulty = faultyOf(variants, (text) => proofOf(blockOf(text), origin))

    expect(faulty).toEqual(['short', 'retyped', 'optional', 'writable', 'renamed'])
  })
})

describe('moduleOf', () => {
  const home = {
    name: '@deepseek-ai/dsh-llm',
    types: new Set<string>(),
    values: new Set(['noUsage']),
  }

  test('lets a snippet use what its reader knows, and nothing else', () => {
    const variants = {
      known: `noUsage.inputTokens.toFixed()\nctx.logger.info('x')`,
      misspelt: 'noUsage.inputToken',
      unheard: 'unheardOf()',
      // A block with an import is a file, which imports all that it uses.
      file: `import 'node:fs'\nctx.logger.info('x')`,
    }

    const faulty = faultyOf(variants, (text) => moduleOf(blockOf(text), home))

    expect(faulty).toEqual(['misspelt', 'unheard', 'file'])
  })
})

describe('problemsOfYml', () => {
  test.each([
    ['fits', '- name: plugin\n  config: { path: a }', []],
    ['is local', '- name: ./mine.ts\n  config: { any: thing }', []],
    ['has an expression', '- name: plugin\n  config: { path: a, url: !!js process.env.URL }', []],
    ['names no plugin', '- name: plugins', ['"plugins" is no plugin']],
    [
      'has an unknown key',
      '- name: plugin\n  config: { path: a, paht: b }',
      ['"plugin" has no config key "paht"'],
    ],
    ['lacks a key', '- name: plugin', ['"plugin": path is missing']],
    [
      'is in a group',
      '- name: cordis:group\n  group: true\n  config: [{ name: plugins }]',
      ['"plugins" is no plugin'],
    ],
    ['is no list', 'name: plugin', ['is no list of entries']],
  ])('of an entry that %s', async (_, yml, problems) => {
    expect(await problemsOfYml(yml, find)).toEqual(problems)
  })
})

describe('problemsOfSh', () => {
  const shell: Shell = {
    manifest: { name: 'root', packageManager: 'pnpm@1.2.3', scripts: { test: 'vitest' } },
    options: new Set(['-p', '--cwd']),
    foreign: new Set(['git']),
  }

  test.each([
    ['pnpm test # all of it', []],
    ['KEY=x npx --yes pnpm@1.2.3 dsh docs/a.yml --cwd ~/x', ['there is no "docs/a.yml"']],
    ['cp -r packages/core packages/mine && pnpm test packages/mine/x', []],
    ['pnpm tset', ['there is no script "tset"']],
    ['npx --yes pnpm@1.2.4 test', ['npx runs "pnpm@1.2.4", not "pnpm@1.2.3"']],
    ['git diff | pnpm exec dsh -p - --ouput json', ['dsh has no option "--ouput"']],
    ['rm -rf x', ['"rm" is no program that the docs may use']],
  ])('of %s', (command, problems) => {
    expect(problemsOfSh(blockOf(command), shell)).toEqual(problems)
  })
})

/** The names of the texts that do not compile when they are made into modules. */
function faultyOf(
  variants: Readonly<Record<string, string>>,
  moduleFor: (text: string) => string,
): string[] {
  const files = Object.entries(variants).map(([name, text]) => [`${name}.ts`, moduleFor(text)])
  const problems = checkPrograms([Object.fromEntries(files) as Record<string, string>])
  return Object.keys(variants).filter((name) => problems.get(`${name}.ts`)?.length !== 0)
}

function blockOf(text: string): CodeBlock {
  return { file: 'README.md', line: 1, language: 'ts', text, given: '' }
}

const text = Object.assign((value: unknown) => value, { type: 'string' })
const schema: Schema = Object.assign(
  (value: unknown): unknown => {
    if (typeof value === 'object' && value !== null && 'path' in value) return value
    throw new Error('path is missing')
  },
  { type: 'object', dict: { path: text, url: text } },
)

async function find(name: string): Promise<{ schema: Schema } | undefined> {
  return name === 'plugin' ? { schema } : undefined
}
