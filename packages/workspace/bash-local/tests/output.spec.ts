import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Output, OutputFiles } from '../src/output.ts'
import { createBash, run, setTemporaryFolder } from './helpers.ts'

function createFiles(maxBytes = 1000): OutputFiles {
  const files = new OutputFiles(maxBytes)
  onTestFinished(() => files.deleteAll())
  return files
}

function outputOf(maxBytes: number, chunks: readonly (string | Buffer)[], files = createFiles()) {
  const output = new Output(maxBytes, files)
  for (const chunk of chunks) output.push(Buffer.from(chunk))
  return output.end()
}

describe('Output', () => {
  test('gives all of an output that fits, and makes no file', () => {
    expect(outputOf(10, ['01234', '56789'])).toEqual({ output: '0123456789', isTruncated: false })
  })

  test('gives head, note and tail of a longer one, and a file with all of it', () => {
    const { output, outputPath, isTruncated } = outputOf(10, ['01234', '56789', 'a', 'bcd'])

    expect(isTruncated).toBe(true)
    expect(output).toBe(`01234\n[4 bytes left out; the whole output is in "${outputPath}"]\n9abcd`)
    expect(readFileSync(outputPath ?? '', 'utf8')).toBe('0123456789abcd')
    expect(statSync(outputPath ?? '').mode & 0o777).toBe(0o600)
  })

  test('stops writing the file at its limit, and says so', () => {
    const { output, outputPath } = outputOf(10, ['0123456789ab', 'cdefghij'], createFiles(15))

    expect(output).toBe(
      `01234\n[10 bytes left out; the first 15 bytes are in "${outputPath}"]\nfghij`,
    )
    expect(readFileSync(outputPath ?? '', 'utf8')).toBe('0123456789abcde')
  })

  test.each([5, 6, 7, 8, 9, 10, 11, 12, 13])('cuts no character in two at %i bytes', (maxBytes) => {
    const { output } = outputOf(maxBytes, [Buffer.from('😀é😀é😀é😀é')])

    expect(output.isWellFormed()).toBe(true)
    expect(output).not.toContain('\ufffd')
  })

  test('keeps binary output byte by byte in the file', () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))

    const { output, outputPath } = outputOf(100, [bytes])

    expect(output.isWellFormed()).toBe(true)
    expect(readFileSync(outputPath ?? '')).toEqual(bytes)
  })

  test('goes on without a file when none can be written', () => {
    setTemporaryFolder('/no/such/folder')

    const { output, outputPath } = outputOf(10, ['0123456789abcd', 'e'])

    expect(output).toMatch(
      /^01234\n\[5 bytes left out; they could not be stored: ENOENT.*\]\nabcde$/,
    )
    expect(outputPath).toBeUndefined()
  })

  test('ignores what comes after its end', () => {
    const output = new Output(10, createFiles())
    output.push(Buffer.from('abc'))

    const kept = output.end()
    output.push(Buffer.from('d'.repeat(100)))

    expect(output.end()).toBe(kept)
    expect(kept.output).toBe('abc')
  })
})

describe('OutputFiles', () => {
  test('keeps the newest 32 files and deletes all when told', () => {
    const files = createFiles()
    const paths = Array.from({ length: 34 }, () => outputOf(1, ['abc'], files).outputPath ?? '')

    expect(paths.map(existsSync)).toEqual(paths.map((_, index) => index >= 2))

    rmSync(dirname(paths[33] ?? ''), { recursive: true })
    files.deleteAll()
    expect(paths.map((path) => existsSync(dirname(path)))).toEqual(paths.map(() => false))
  })
})

describe('LocalBash.execute, when the output is long', () => {
  test('keeps memory and file bounded for hundreds of megabytes', async () => {
    const before = process.memoryUsage.rss()

    const { output, outputPath } = await run('yes | head -c 200000000; echo end', {
      timeoutMs: 20_000,
    })

    expect(output).toMatch(
      /^y\n[^]*\[199999004 bytes left out; the first 100000 bytes are in .*\]\n[^]*end\n$/,
    )
    expect(output.length).toBeLessThan(1300)
    expect(statSync(outputPath ?? '').size).toBe(100_000)
    expect(process.memoryUsage.rss() - before).toBeLessThan(150_000_000)
  }, 30_000)

  test('ends a command that never stops writing', async () => {
    const result = await run('yes', { timeoutMs: 200 })

    expect(result).toMatchObject({ isTimedOut: true, isTruncated: true })
  })

  test('deletes the files when the executor is disposed', async () => {
    const bash = createBash()
    const { outputPath = '' } = await run('seq 1000', {}, bash)
    expect(readFileSync(outputPath, 'utf8')).toMatch(/^1\n2\n[^]*\n1000\n$/)

    await bash.dispose()

    expect(existsSync(dirname(outputPath))).toBe(false)
  })
})
