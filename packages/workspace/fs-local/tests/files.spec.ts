import { chmod, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { anyRange, createAgent, createFs, failureOf } from './helpers.ts'

describe('reading', () => {
  test('gives the wanted lines and the number of all', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': '1\n2\n3\n4\n5\n' })

    const part = await fs.read(agent, 'a.txt', { firstLine: 2, maxLines: 3, maxBytes: 1000 })

    expect(part).toEqual({ path: 'a.txt', lines: ['2', '3', '4'], lineCount: 5 })
  })

  test('gives no lines of an empty file, and refuses a line past the end', async () => {
    const fs = await createFs()
    const agent = await createAgent({ empty: '', 'a.txt': 'a\nb' })

    expect(await fs.read(agent, 'empty', anyRange)).toMatchObject({ lines: [], lineCount: 0 })
    expect(await failureOf(fs.read(agent, 'a.txt', { ...anyRange, firstLine: 3 }))).toBe(
      'OUT_OF_RANGE: "a.txt" has 2 lines, line 3 is past its end',
    )
  })

  test.each([
    ['a NUL byte', Buffer.from('text\0more'), 'a NUL byte at offset 4'],
    ['bytes that are not UTF-8', Buffer.from([0x63, 0x61, 0x66, 0xe9]), 'bytes that are not UTF-8'],
    ['UTF-16', Buffer.from('\uFEFFtext', 'utf16le'), 'a NUL byte'],
    ['half a character', Buffer.from([0xed, 0xa0, 0x80]), 'bytes that are not UTF-8'],
  ])('refuses %s', async (_, content, reason) => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.bin': content })

    const failure = await failureOf(fs.read(agent, 'a.bin', anyRange))

    expect(failure).toContain('BINARY_FILE: "a.bin" is not text')
    expect(failure).toContain(reason)
  })

  test('refuses a huge file without reading it', async () => {
    const fs = await createFs()
    const agent = await createAgent({ huge: 'text' })
    // Full of holes: nothing on the disk, but hours to read.
    await truncate(join(agent.cwd, 'huge'), 8_000_000_000_000)

    const failure = await failureOf(fs.read(agent, 'huge', anyRange))

    expect(failure).toMatch(/^FILE_TOO_LARGE: "huge" has 8000000000000 bytes.*grep/)
    expect(await failureOf(fs.readBytes(agent, 'huge'))).toContain('FILE_TOO_LARGE')
  })

  test('bounds files that hide their size', async () => {
    const fs = await createFs({ extraRoots: ['/proc'], maxFileBytes: 100 })
    const agent = await createAgent()

    const failure = await failureOf(fs.read(agent, '/proc/cpuinfo', anyRange))

    expect(failure).toContain('FILE_TOO_LARGE')
  })

  test('takes a file of exactly the greatest size, and none that is larger', async () => {
    const fs = await createFs({ maxFileBytes: 10 })
    const agent = await createAgent({ fits: '1234567890', large: '12345678901' })

    expect(await fs.read(agent, 'fits', anyRange)).toMatchObject({ lines: ['1234567890'] })
    expect(await failureOf(fs.read(agent, 'large', anyRange))).toContain('FILE_TOO_LARGE')
  })
})

describe('writing', () => {
  test('creates a file and its folders', async () => {
    const fs = await createFs()
    const agent = await createAgent()

    const change = await fs.write(agent, 'a/b/c.txt', 'é')

    expect(change).toEqual({ path: 'a/b/c.txt', bytes: 2, isNew: true })
    expect(await readFile(join(agent.cwd, 'a/b/c.txt'), 'utf8')).toBe('é')
  })

  test('keeps the mode of the file it replaces', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'run.sh': 'old' })
    await chmod(join(agent.cwd, 'run.sh'), 0o777)
    await fs.read(agent, 'run.sh', anyRange)

    await fs.write(agent, 'run.sh', 'new')

    expect((await stat(join(agent.cwd, 'run.sh'))).mode & 0o7777).toBe(0o777)
    expect(await readFile(join(agent.cwd, 'run.sh'), 'utf8')).toBe('new')
  })

  test('puts a new file in the place of the old one, which open handles keep seeing whole', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': 'old' })
    const path = join(agent.cwd, 'a.txt')
    const before = await stat(path)
    await fs.read(agent, 'a.txt', anyRange)

    await fs.write(agent, 'a.txt', 'new')

    expect((await stat(path)).ino).not.toBe(before.ino)
    expect(await readdir(agent.cwd)).toEqual(['a.txt'])
  })

  test('keeps the byte order mark and the CRLF of the file it replaces', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': '\uFEFFone\r\ntwo\r\n' })
    const part = await fs.read(agent, 'a.txt', anyRange)

    await fs.write(agent, 'a.txt', 'three\nfour\n')

    expect(part.lines).toEqual(['one', 'two'])
    expect(await readFile(join(agent.cwd, 'a.txt'), 'utf8')).toBe('\uFEFFthree\r\nfour\r\n')
  })

  test('refuses half a character and too much text, and leaves nothing behind', async () => {
    const fs = await createFs({ maxFileBytes: 10 })
    const agent = await createAgent()

    expect(await failureOf(fs.write(agent, 'a', 'x\uDC00'))).toContain('INVALID_TEXT')
    expect(await failureOf(fs.write(agent, 'b/c', 'x'.repeat(11)))).toContain('FILE_TOO_LARGE')
    expect(await readdir(agent.cwd)).toEqual([])
  })

  test('ends with the abort, before or amid it, and leaves no temporary file', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': 'old' })
    await fs.read(agent, 'a.txt', anyRange)
    const aborted = AbortSignal.abort(new Error('stop'))
    const controller = new AbortController()

    const writing = fs.write(agent, 'a.txt', 'x'.repeat(9_000_000), controller.signal)
    controller.abort(new Error('stop'))

    await expect(writing).rejects.toThrow('stop')
    await expect(fs.write(agent, 'new.txt', 'x', aborted)).rejects.toThrow('stop')
    await expect(fs.read(agent, 'a.txt', { ...anyRange, signal: aborted })).rejects.toThrow('stop')
    expect(await readdir(agent.cwd)).toEqual(['a.txt'])
    expect(await readFile(join(agent.cwd, 'a.txt'), 'utf8')).toBe('old')
  })

  test.skipIf(process.getuid?.() === 0)('respects a file that is read-only', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': 'old' })
    await chmod(join(agent.cwd, 'a.txt'), 0o444)
    await fs.read(agent, 'a.txt', anyRange)

    expect(await failureOf(fs.write(agent, 'a.txt', 'new'))).toContain('PERMISSION_DENIED')
  })
})

describe('reading before writing', () => {
  test('is asked of whoever changes an existing file', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': 'old' })

    expect(await failureOf(fs.write(agent, 'a.txt', 'new'))).toBe(
      'NOT_READ: you have not read "a.txt": read it first',
    )
    expect(await failureOf(fs.edit(agent, 'a.txt', { oldText: 'old', newText: 'new' }))).toContain(
      'NOT_READ',
    )
    expect(await readFile(join(agent.cwd, 'a.txt'), 'utf8')).toBe('old')
  })

  test('is not done by looking at the bytes, by a failed read or by another agent', async () => {
    const fs = await createFs({ maxFileBytes: 10 })
    const agent = await createAgent({ 'a.txt': 'old', large: 'x'.repeat(11) })
    const other = { cwd: agent.cwd }
    await fs.readBytes(agent, 'a.txt')
    await fs.read(other, 'a.txt', anyRange)
    await failureOf(fs.read(agent, 'large', anyRange))

    expect(await failureOf(fs.write(agent, 'a.txt', 'new'))).toContain('NOT_READ')
    expect(await failureOf(fs.write(agent, 'large', 'new'))).toContain('NOT_READ')
  })

  test('is done by writing the file', async () => {
    const fs = await createFs()
    const agent = await createAgent()
    await fs.write(agent, 'a.txt', 'one')

    await fs.edit(agent, 'a.txt', { oldText: 'one', newText: 'two' })
    await fs.write(agent, 'a.txt', 'three')

    expect(await readFile(join(agent.cwd, 'a.txt'), 'utf8')).toBe('three')
  })

  test('counts for a file by whatever path it is reached', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'src/a.txt': 'old' })
    await fs.read(agent, join(agent.cwd, 'src/a.txt'), anyRange)

    await fs.write(agent, './src/../src/a.txt', 'new')

    expect(await readFile(join(agent.cwd, 'src/a.txt'), 'utf8')).toBe('new')
  })

  test('is asked again once someone else has changed the file, even within one clock tick', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': 'old' })
    const path = join(agent.cwd, 'a.txt')
    const { atime, mtime } = await stat(path)
    await fs.read(agent, 'a.txt', anyRange)
    await writeFile(path, 'OLD')
    await utimes(path, atime, mtime)

    const failure = await failureOf(fs.edit(agent, 'a.txt', { oldText: 'O', newText: 'o' }))

    expect(failure).toMatch(/^STALE_FILE: "a.txt" was changed .*: read it again/)
    expect(await readFile(path, 'utf8')).toBe('OLD')
    await fs.read(agent, 'a.txt', anyRange)
    await fs.edit(agent, 'a.txt', { oldText: 'O', newText: 'o' })
    expect(await readFile(path, 'utf8')).toBe('oLD')
  })

  test('is not asked again when only the time of a file has changed', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': 'old' })
    await fs.read(agent, 'a.txt', anyRange)
    await utimes(join(agent.cwd, 'a.txt'), new Date(0), new Date(0))

    await fs.write(agent, 'a.txt', 'new')

    expect(await readFile(join(agent.cwd, 'a.txt'), 'utf8')).toBe('new')
  })

  test('does not keep a deleted file from being written, nor make it editable', async () => {
    const fs = await createFs()
    const agent = await createAgent({ 'a.txt': 'old' })
    await fs.read(agent, 'a.txt', anyRange)
    await rm(join(agent.cwd, 'a.txt'))

    expect(await failureOf(fs.edit(agent, 'a.txt', { oldText: 'old', newText: 'new' }))).toContain(
      'FILE_NOT_FOUND',
    )
    expect(await fs.write(agent, 'a.txt', 'new')).toMatchObject({ isNew: true })
  })

  test('lets one of many agents win that edit a file at the same time', async () => {
    const fs = await createFs()
    const { cwd } = await createAgent({ 'a.txt': 'start' })
    const agents = Array.from({ length: 20 }, () => ({ cwd }))
    await Promise.all(agents.map((agent) => fs.read(agent, 'a.txt', anyRange)))

    const results = await Promise.allSettled(
      agents.map((agent, i) =>
        fs.edit(agent, 'a.txt', { oldText: 'start', newText: `start, agent ${i}` }),
      ),
    )

    const winners = results.flatMap(({ status }, i) => (status === 'fulfilled' ? [i] : []))
    expect(winners).toHaveLength(1)
    expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe(`start, agent ${winners[0]}`)
    const codes = results.flatMap((result) =>
      result.status === 'rejected' ? [(result.reason as { code: string }).code] : [],
    )
    expect(codes).toEqual(Array.from({ length: 19 }, () => 'STALE_FILE'))
    expect(await readdir(cwd)).toEqual(['a.txt'])
  })

  test('lets one of many agents win that create a file at the same time', async () => {
    const fs = await createFs()
    const { cwd } = await createAgent()
    const agents = Array.from({ length: 20 }, () => ({ cwd }))

    const results = await Promise.allSettled(
      agents.map((agent, i) => fs.write(agent, 'a.txt', `agent ${i}`)),
    )

    const winners = results.flatMap(({ status }, i) => (status === 'fulfilled' ? [i] : []))
    expect(winners).toHaveLength(1)
    expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe(`agent ${winners[0]}`)
  })
})
