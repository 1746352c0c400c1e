import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { addFiles, anyLimits, anyRange, createAgent, createFs, failureOf } from './helpers.ts'

describe('paths of an agent', () => {
  test('are relative to its cwd, or absolute within it', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'src/a.txt': 'a\n' })

    const paths = ['src/a.txt', './src/../src/a.txt', join(agent.cwd, 'src/a.txt')]
    const parts = await Promise.all(paths.map((path) => fs.read(agent, path, anyRange)))

    expect(parts.map(({ path }) => path)).toEqual(['src/a.txt', 'src/a.txt', 'src/a.txt'])
  })

  test.each(['../../etc/passwd', '/etc/passwd', '..', 'a/../../x', '../'.repeat(400)])(
    'may not leave the workspace: %s',
    async (path) => {
      const fs = await createFs()
      const agent = await createAgent()

      const failures = await Promise.all([
        failureOf(fs.read(agent, path, anyRange)),
        failureOf(fs.readBytes(agent, path)),
        failureOf(fs.write(agent, path, 'x')),
        failureOf(fs.edit(agent, path, { oldText: 'root', newText: 'x' })),
        failureOf(fs.glob(agent, '*', { ...anyLimits, path })),
        failureOf(fs.grep(agent, { pattern: 'x' }, { ...anyLimits, path })),
      ])

      for (const failure of failures) {
        expect(failure).toMatch(/^OUTSIDE_WORKSPACE: .*stay in/)
        expect(failure).toContain(agent.cwd)
      }
    },
  )

  test('name the workspace when that is gone, and never make it anew', async () => {
    const fs = await createFs()
    const cwd = join(await temporaryFolder(), 'gone')
    const agent = { cwd }

    const failures = await Promise.all([
      failureOf(fs.read(agent, 'a', anyRange)),
      failureOf(fs.readBytes(agent, 'a')),
      failureOf(fs.write(agent, 'a', 'x')),
      failureOf(fs.edit(agent, 'a', { oldText: 'a', newText: 'x' })),
      failureOf(fs.glob(agent, '*', anyLimits)),
      failureOf(fs.grep(agent, { pattern: 'x' }, anyLimits)),
    ])

    for (const failure of failures) {
      expect(failure).toContain(`WORKSPACE_MISSING: the workspace "${cwd}" does not exist`)
    }
    expect(existsSync(cwd)).toBe(false)
  })

  test('may not leave it by a neighbour whose name begins like the workspace', async () => {
    const fs = await createFs()
    const outer = await temporaryFolder()
    await addFiles(outer, { 'work/a': 'a', 'work-secret/b': 'b' })

    const failure = await failureOf(
      fs.read({ cwd: join(outer, 'work') }, '../work-secret/b', anyRange),
    )

    expect(failure).toContain('OUTSIDE_WORKSPACE')
  })

  test('may begin with dots that are part of a name', async () => {
    const fs = await createFs()
    const agent = await createAgent({ '..data/a': 'a' })

    const part = await fs.read(agent, '..data/a', anyRange)

    expect(part.path).toBe('..data/a')
  })

  test('may not leave it by a link to a file, to a folder or to nothing', async () => {
    const fs = await createFs()
    const agent = await createAgent()
    const outside = await createAgent({ 'secret.txt': 'secret' })
    await symlink(join(outside.cwd, 'secret.txt'), join(agent.cwd, 'file'))
    await symlink(outside.cwd, join(agent.cwd, 'folder'))
    await symlink(join(outside.cwd, 'new.txt'), join(agent.cwd, 'dangling'))
    await symlink('dangling', join(agent.cwd, 'twice'))
    await symlink(join(outside.cwd, 'made'), join(agent.cwd, 'no-folder'))

    const paths = ['file', 'folder/secret.txt', 'folder/new', 'dangling', 'twice', 'no-folder/x']
    for (const path of paths) {
      expect(await failureOf(fs.write(agent, path, 'x'))).toContain('OUTSIDE_WORKSPACE')
      expect(await failureOf(fs.read(agent, path, anyRange))).toContain('OUTSIDE_WORKSPACE')
    }

    expect(await readdir(outside.cwd)).toEqual(['secret.txt'])
    expect(await readFile(join(outside.cwd, 'secret.txt'), 'utf8')).toBe('secret')
  })

  test('follow links that stay inside, and keep them', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'real/a.txt': 'a' })
    await symlink('real', join(agent.cwd, 'link'))
    await symlink('real/new.txt', join(agent.cwd, 'dangling'))

    const part = await fs.read(agent, 'link/a.txt', anyRange)
    const change = await fs.write(agent, 'dangling', 'new')

    expect(part.path).toBe('real/a.txt')
    expect(change).toEqual({ path: 'real/new.txt', bytes: 3, isNew: true })
    expect(await readFile(join(agent.cwd, 'dangling'), 'utf8')).toBe('new')
  })

  test('may lead to the real place of a workspace that is itself a link', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': 'a' })
    const outer = await temporaryFolder()
    await symlink(agent.cwd, join(outer, 'link'))

    const part = await fs.read({ cwd: join(outer, 'link') }, join(agent.cwd, 'a.txt'), anyRange)

    expect(part.path).toBe('a.txt')
  })

  test('may lead to an extra root, and are absolute there', async () => {
    const other = await createAgent({ 'b.txt': 'b' })
    const fs = await createFs({ extraRoots: [other.cwd, '/does/not/exist'] })
    const agent = await createAgent()
    const path = join(other.cwd, 'b.txt')

    const part = await fs.read(agent, path, anyRange)
    const found = await fs.glob(agent, '*.txt', { ...anyLimits, path: other.cwd })

    expect(part.path).toBe(path)
    expect(found.items).toEqual([path])
    expect(await failureOf(fs.read(agent, '/etc/passwd', anyRange))).toContain('OUTSIDE_WORKSPACE')
  })

  test.each([
    ['an empty path', '', 'INVALID_PATH'],
    ['a NUL', 'a\0b', 'INVALID_PATH'],
    ['half a character', 'a\uD800', 'INVALID_PATH'],
    ['a name that is too long', 'x'.repeat(300), 'INVALID_PATH'],
    ['a path that is too long', 'x/'.repeat(5000), 'INVALID_PATH'],
    ['a file in the place of a folder', 'a.txt/b', 'INVALID_PATH'],
    ['a link to itself', 'loop', 'INVALID_PATH'],
    ['a link whose target is behind itself', 'hidden-loop', 'INVALID_PATH'],
    ['a folder', 'folder', 'NOT_A_FILE'],
    ['the workspace itself', '.', 'NOT_A_FILE'],
    ['a pipe', 'pipe', 'NOT_A_FILE'],
  ])('are refused at once for %s', async (_, path, code) => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': 'a', 'folder/x': '' })
    await symlink('loop', join(agent.cwd, 'loop'))
    await symlink('nothing/../hidden-loop', join(agent.cwd, 'hidden-loop'))
    execFileSync('mkfifo', [join(agent.cwd, 'pipe')])

    const failures = await Promise.all([
      failureOf(fs.read(agent, path, anyRange)),
      failureOf(fs.write(agent, path, 'x')),
      failureOf(fs.edit(agent, path, { oldText: 'a', newText: 'b' })),
    ])

    for (const failure of failures) {
      expect(failure.startsWith(`${code}: `)).toBe(true)
      expect(failure.isWellFormed()).toBe(true)
      expect(failure.length).toBeLessThan(800)
    }
  })

  test('are refused for devices, also where roots allow them', async () => {
    const fs = await createFs({ extraRoots: ['/dev'] })
    const agent = await createAgent()

    expect(await failureOf(fs.read(agent, '/dev/zero', anyRange))).toContain('NOT_A_FILE')
    expect(await failureOf(fs.write(agent, '/dev/null', 'x'))).toContain('NOT_A_FILE')
    expect(
      await failureOf(fs.grep(agent, { pattern: 'x' }, { ...anyLimits, path: '/dev/zero' })),
    ).toContain('NOT_A_FILE')
  })

  test('of a missing file say how to find the right one', async () => {
    const fs = await createFs()
    const agent = await createAgent()

    const failure = await failureOf(fs.read(agent, 'nope.txt', anyRange))

    expect(failure).toBe(
      'FILE_NOT_FOUND: "nope.txt" does not exist: look for the right path with a glob',
    )
  })
})
