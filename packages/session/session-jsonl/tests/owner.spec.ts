import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { livingOwner, ownMark, parseStat } from '../src/owner.ts'

describe('livingOwner', () => {
  test('knows this process, and one that belongs to somebody else', () => {
    const [start] = readFileSync('/proc/1/stat', 'latin1').split(') ')[1]!.split(' ').slice(19)

    expect(livingOwner(ownMark)).toBe(process.pid)
    expect(livingOwner(`1 ${start}`)).toBe(1)
  })

  test('knows no process that has ended and was not waited for', async () => {
    // The shell becomes a program that waits for no child.
    const shell = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 1000'])
    onTestFinished(() => void shell.kill('SIGKILL'))
    const [line] = (await once(shell.stdout, 'data')) as [Buffer]
    const pid = Number(line.toString())
    const stat = (): string[] =>
      readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
    await expect.poll(() => stat()[0]).toBe('Z')

    expect(livingOwner(`${pid} ${stat()[19]}`)).toBeUndefined()
  })
})

function statLine(state: string, start: string): string {
  return `7 (a ) b) ${state} 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 ${start} 99 100`
}

describe('parseStat', () => {
  test.each([
    [
      'reads state and start behind any name',
      statLine('S', '4711'),
      { isDead: false, start: '4711' },
    ],
    ['knows a process that has ended', statLine('Z', '4711'), { isDead: true, start: '4711' }],
    ['takes no start from a kernel that tells none', statLine('S', '0'), { isDead: false }],
    ['takes no start from a line that is too short', '7 (a) S 1', { isDead: false }],
  ])('%s', (_, text, expected) => {
    expect(parseStat(text)).toEqual(expected)
  })
})
