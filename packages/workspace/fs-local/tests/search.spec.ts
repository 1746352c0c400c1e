import { execFileSync } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import type { FsAgent, FsService } from '../src/index.ts'
import {
  addFiles,
  anyLimits,
  anyRange,
  createAgent,
  createFs,
  failureOf,
  type Files,
} from './helpers.ts'

interface Searched {
  readonly fs: FsService
  readonly agent: FsAgent
  readonly glob: (pattern: string, path?: string) => Promise<readonly string[]>
  readonly grep: (pattern: string, path?: string, glob?: string) => Promise<string[]>
}

async function given(files: Files): Promise<Searched> {
  const fs = await createFs()
  const agent = await createAgent(files)
  return {
    fs,
    agent,
    glob: async (pattern, path) => (await fs.glob(agent, pattern, { ...anyLimits, path })).items,
    grep: async (pattern, path, glob) => {
      const { items } = await fs.grep(agent, { pattern, glob }, { ...anyLimits, path })
      return items.map((match) => `${match.path}:${match.line}:${match.text}`)
    },
  }
}

function childCount(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length
}

/** A file of holes that takes minutes to search. */
async function addEndless(agent: FsAgent): Promise<void> {
  await writeFile(join(agent.cwd, 'endless'), '')
  await truncate(join(agent.cwd, 'endless'), 8_000_000_000_000)
}

describe('glob', () => {
  const sources = {
    'b.ts': '',
    'a.ts': '',
    'a.js': '',
    'src/c.ts': '',
    'src/deep/d.ts': '',
    'src/deep/[e].ts': '',
    '.github/ci.yml': '',
    '.git/config': '',
  }

  test.each([
    ['*.js', ['a.js']],
    ['*.ts', ['a.ts', 'b.ts', 'src/c.ts', 'src/deep/[e].ts', 'src/deep/d.ts']],
    ['**/*.ts', ['a.ts', 'b.ts', 'src/c.ts', 'src/deep/[e].ts', 'src/deep/d.ts']],
    ['./*.ts', ['a.ts', 'b.ts']],
    ['/*.ts', ['a.ts', 'b.ts']],
    ['src/*.ts', ['src/c.ts']],
    ['src/**', ['src/c.ts', 'src/deep/[e].ts', 'src/deep/d.ts']],
    ['*.{js,yml}', ['.github/ci.yml', 'a.js']],
    ['[ab].ts', ['a.ts', 'b.ts']],
    ['\\[e\\].ts', ['src/deep/[e].ts']],
    ['!**/*.ts', ['.github/ci.yml', 'a.js']],
    ['../*', []],
    ['.git/**', []],
  ])('%s finds %j', async (pattern, expected) => {
    const { glob } = await given(sources)

    expect(await glob(pattern)).toEqual(expected)
  })

  test('searches a folder, and takes a glob that begins at the root of the file system', async () => {
    const { glob, agent } = await given(sources)

    expect(await glob('*.ts', 'src/deep')).toEqual(['src/deep/[e].ts', 'src/deep/d.ts'])
    expect(await glob(`${agent.cwd}/src/*.ts`)).toEqual(['src/c.ts'])
  })

  test.each(['*', '**', '**/*', '*.log', 'dist/**', 'src/*', '!*.ts'])(
    'never brings back what .gitignore names: %s',
    async (pattern) => {
      const { glob } = await given({
        '.gitignore': '*.log\n/dist/\nnode_modules/\n!keep.log\n',
        'a.log': '',
        'keep.log': '',
        'dist/a.js': '',
        'node_modules/x/index.js': '',
        'src/b.log': '',
        'src/b.txt': '',
        'src/node_modules/y.js': '',
        'src/.gitignore': 'c.txt\n',
        'src/c.txt': '',
      })

      const found = await glob(pattern)

      const allowed = ['.gitignore', 'keep.log', 'src/.gitignore', 'src/b.txt']
      expect(found.filter((path) => !allowed.includes(path))).toEqual([])
    },
  )

  test('heeds the .gitignore above a folder, up to the workspace or the repository', async () => {
    const { glob, agent, fs } = await given({
      '.gitignore': '*.log\n/inner/*\n/inner/sub/*\n',
      'src/a.log': '',
      'src/a.txt': '',
      'inner/b.txt': '',
      'inner/.gitignore': '*.tmp\n',
      'inner/b.tmp': '',
      'inner/sub/c.txt': '',
    })
    const inner = { cwd: join(agent.cwd, 'inner') }

    expect(await glob('a.*', 'src')).toEqual(['src/a.txt'])
    expect((await fs.glob(inner, 'b.*', anyLimits)).items).toEqual(['b.txt'])
    await addFiles(agent.cwd, { 'inner/.git': 'gitdir: elsewhere' })
    expect((await fs.glob(inner, 'b.*', anyLimits)).items).toEqual(['b.txt'])
    expect((await fs.glob(inner, '*', { ...anyLimits, path: 'sub' })).items).toEqual(['sub/c.txt'])
  })

  test('follows no links and lists no pipes', async () => {
    const { glob, grep, agent } = await given({ 'a.txt': 'secret' })
    const outside = await createAgent({ 'b.txt': 'secret' })
    await symlink(outside.cwd, join(agent.cwd, 'folder'))
    await symlink(join(outside.cwd, 'b.txt'), join(agent.cwd, 'link.txt'))
    execFileSync('mkfifo', [join(agent.cwd, 'pipe.txt')])

    expect(await glob('*.txt')).toEqual(['a.txt'])
    expect(await grep('secret')).toEqual(['a.txt:1:secret'])
  })

  test('is refused for a file, and for a folder that is missing', async () => {
    const { fs, agent } = await given({ 'a.txt': '' })

    expect(await failureOf(fs.glob(agent, '*', { ...anyLimits, path: 'a.txt' }))).toContain(
      'NOT_A_FOLDER',
    )
    expect(await failureOf(fs.glob(agent, '*', { ...anyLimits, path: 'b' }))).toContain(
      'FILE_NOT_FOUND',
    )
  })

  test.each(['[', '{a', 'a\0b', 'x'.repeat(3_000_000)])(
    'refuses a pattern that is none (%#)',
    async (pattern) => {
      const { fs, agent } = await given({ a: '' })

      expect(await failureOf(fs.glob(agent, pattern, anyLimits))).toMatch(/^INVALID_PATTERN: /)
    },
  )

  test.each([1000, 100_000])('says what is wrong with a glob of %d characters', async (length) => {
    const { fs, agent } = await given({ a: '' })

    const failure = await failureOf(fs.glob(agent, `[${'x'.repeat(length)}`, anyLimits))

    expect(failure).toContain('unclosed character class')
    expect(failure.length).toBeLessThan(600)
  })

  test('lists names with line ends, spaces and odd characters', async () => {
    const names = ['-n', 'a b', 'line\nend', 'é😀'].toSorted()
    const { glob } = await given(Object.fromEntries(names.map((name) => [name, 'x'])))

    expect((await glob('*')).toSorted()).toEqual(names)
    expect((await glob('[!0]*')).toSorted()).toEqual(names)
  })

  test('bounds the count and the bytes of ten thousand files, in the same order each time', async () => {
    const fs = await createFs()
    const agent = await createAgent()
    for (let i = 0; i < 100; i += 1) {
      await mkdir(join(agent.cwd, `d${i}`))
      const names = Array.from({ length: 100 }, (_, k) => `d${i}/${i + 100 * k}.txt`)
      await Promise.all(names.map((name) => writeFile(join(agent.cwd, name), '')))
    }

    const all = await fs.glob(agent, '*.txt', { maxResults: 20_000, maxBytes: 1_000_000 })
    const few = await fs.glob(agent, '*.txt', { maxResults: 100, maxBytes: 1_000_000 })
    const exact = await fs.glob(agent, '*.txt', { maxResults: 10_000, maxBytes: 1_000_000 })
    const small = await fs.glob(agent, '**', { maxResults: 20_000, maxBytes: 1000 })

    expect(all.items).toHaveLength(10_000)
    expect(all.cut).toBeUndefined()
    expect(few).toEqual({ items: all.items.slice(0, 100), cut: 'results' })
    expect(exact.cut).toBeUndefined()
    expect(small.cut).toBe('results')
    expect(small.items.join('\n').length).toBeLessThan(1000)
    expect(all.items.slice(0, 2)).toEqual(['d0/0.txt', 'd0/100.txt'])
  }, 30_000)
})

describe('grep', () => {
  test('finds lines, sorted by path, without their ends', async () => {
    const { grep } = await given({
      'b.txt': 'no\nfoo one\n',
      'a.txt': 'foo two\r\nbar\r\n  foo\r\n',
      'c/d.txt': 'foo:3:x',
    })

    expect(await grep('foo')).toEqual([
      'a.txt:1:foo two',
      'a.txt:3:  foo',
      'b.txt:2:foo one',
      'c/d.txt:1:foo:3:x',
    ])
    expect(await grep('(two|one)$')).toEqual(['a.txt:1:foo two', 'b.txt:2:foo one'])
    expect(await grep('nothing')).toEqual([])
    expect(await grep('-e')).toEqual([])
  })

  test('searches one file, a folder, the files of a glob, or without regard to case', async () => {
    const { grep, fs, agent } = await given({
      'a.ts': 'foo',
      'a.js': 'foo',
      'c/d.ts': 'FOO',
      'c/-v': 'foo',
      '.gitignore': '*.js',
    })

    expect(await grep('foo', 'a.js')).toEqual(['a.js:1:foo'])
    expect(await grep('foo', 'c/-v')).toEqual(['c/-v:1:foo'])
    expect(await grep('foo', 'c')).toEqual(['c/-v:1:foo'])
    expect(await grep('foo', undefined, '*.ts')).toEqual(['a.ts:1:foo'])
    expect(await grep('foo', undefined, '*.js')).toEqual([])
    const query = { pattern: 'foo', ignoreCase: true, glob: '*.ts' }
    expect((await fs.grep(agent, query, anyLimits)).items).toHaveLength(2)
  })

  test('leaves out binary files, and survives text that is not UTF-8', async () => {
    const { grep } = await given({
      'a.bin': Buffer.from('foo\0foo\nfoo\n'),
      'latin.txt': Buffer.from([0x63, 0xe9, 0x20, 0x66, 0x6f, 0x6f]),
      'z.txt': 'foo',
    })

    expect(await grep('foo')).toEqual(['latin.txt:1:c\uFFFD foo', 'z.txt:1:foo'])
    expect(await grep('foo', 'a.bin')).toEqual([])
  })

  test('cuts long lines between characters', async () => {
    const { grep } = await given({ 'a.txt': `foo${'😀'.repeat(100_000)}` })

    const [line = ''] = await grep('foo')

    expect(line.length).toBeLessThan(1200)
    expect(line).toContain('omitted')
    expect(line.isWellFormed()).toBe(true)
    expect(line).not.toContain('\uFFFD')
  })

  test.each([
    ['(?=x)', 'look-around'],
    ['(a)\\1', 'backreferences'],
    ['foo(', 'unclosed group'],
    ['a\nb', 'not allowed'],
    ['\\w{1000}{1000}', 'size limit'],
    [`(${'x'.repeat(100_000)}`, 'unclosed group'],
    ['x'.repeat(3_000_000), 'it is too long'],
    ['a\0b', 'it has a NUL character'],
  ])('refuses a pattern that it cannot use and says why (%#)', async (pattern, reason) => {
    const { fs, agent } = await given({ a: 'a' })

    const failure = await failureOf(fs.grep(agent, { pattern }, anyLimits))

    expect(failure).toMatch(/^INVALID_PATTERN: /)
    expect(failure).toContain(reason)
    expect(failure).not.toContain('--')
    expect(failure.length).toBeLessThan(600)
  })

  test('takes linear time for patterns that backtrack without end elsewhere', async () => {
    const { grep } = await given({ 'a.txt': `${'a'.repeat(100_000)}!` })
    const start = performance.now()

    const found = await Promise.all([grep('(a+)+$'), grep('(a|aa)+b'), grep('(.*)*x')])

    expect(found).toEqual([[], [], []])
    expect(performance.now() - start).toBeLessThan(3000)
  })

  test('takes linear time for globs that backtrack without end elsewhere', async () => {
    const { glob } = await given({ ['a'.repeat(200)]: '' })
    const start = performance.now()

    expect(await glob(`${'*a'.repeat(60)}b`)).toEqual([])
    expect(performance.now() - start).toBeLessThan(3000)
  })

  test('stops when there is enough', async () => {
    const { fs, agent } = await given({ 'a.txt': 'foo\n'.repeat(1_000_000) })

    const byCount = await fs.grep(agent, { pattern: 'foo' }, { ...anyLimits, maxResults: 5 })
    const byBytes = await fs.grep(agent, { pattern: 'foo' }, { maxResults: 1e6, maxBytes: 200 })

    expect(byCount.items).toHaveLength(5)
    expect(byCount.cut).toBe('results')
    expect(byBytes.items).toHaveLength(12)
    expect(byBytes.cut).toBe('results')
  })

  test('gives what it has when time is up', async () => {
    const fs = await createFs({ searchTimeoutMs: 200 })
    const agent = await createAgent()
    await addEndless(agent)

    const found = await fs.grep(agent, { pattern: 'x' }, { ...anyLimits, path: 'endless' })

    expect(found).toEqual({ items: [], cut: 'time' })
    await waitFor('ripgrep is gone', () => childCount() === 0, 1000)
  })

  test('ends with the abort, when no process is left', async () => {
    const { fs, agent } = await given({})
    await addEndless(agent)
    const controller = new AbortController()
    const { signal } = controller

    const searching = fs.grep(agent, { pattern: 'x' }, { ...anyLimits, path: 'endless', signal })
    await waitFor('ripgrep runs', () => childCount() === 1)
    controller.abort(new Error('enough'))

    await expect(searching).rejects.toThrow('enough')

    await waitFor('ripgrep is gone', () => childCount() === 0, 1000)
    await expect(fs.grep(agent, { pattern: 'x' }, { ...anyLimits, signal })).rejects.toThrow(
      'enough',
    )
  })

  test('leaves no listener on a signal that lives on', async () => {
    const { fs, agent } = await given({ a: 'x' })
    const { signal } = new AbortController()

    await fs.grep(agent, { pattern: 'x', glob: 'a' }, { ...anyLimits, signal })
    await fs.glob(agent, 'a', { ...anyLimits, signal })
    await fs.write(agent, 'b', 'x', signal)
    await fs.read(agent, 'b', { ...anyRange, signal })

    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('passes over what it may not read, and tells a missing path', async () => {
    const { fs, agent } = await given({ a: 'x' })

    const failure = await failureOf(fs.grep(agent, { pattern: 'x' }, { ...anyLimits, path: 'b' }))

    expect(failure).toContain('FILE_NOT_FOUND: "b"')
  })
})
