import { describe, expect, test } from 'vitest'
import { temporaryFolder, waitFor } from '@deepseek-ai/dsh-testkit'
import { cleanEnvironment, marksVariable } from '../src/index.ts'
import {
  childrenOfTest,
  isAlive,
  openFiles,
  pidsOf,
  start,
  startFixture,
  textOf,
} from './helpers.ts'

async function runAndStop(): Promise<void> {
  const child = start({ command: 'sh', args: ['-c', 'sleep 100 & sleep 100'], stdin: 'pipe' })
  await child.stop({ eofGraceMs: 1, termGraceMs: 1000 })
}

describe('startProcess', () => {
  test('runs a command with arguments, folder and environment, its stdin at its end', async () => {
    const cwd = await temporaryFolder()
    const script = 'cat; echo "$0 $1 $PWD $WORD"; exit 3'

    const child = start({
      command: 'sh',
      args: ['-c', script, 'a', 'b c'],
      cwd,
      env: cleanEnvironment({ WORD: 'w' }),
    })

    expect(await textOf(child.stdout)).toBe(`a b c ${cwd} w\n`)
    expect(await child.exited).toEqual({ kind: 'exited', code: 3 })
    expect(await child.gone).toEqual([])
  })

  test('gives a process its own session and group', async () => {
    const child = start({ command: 'sh', args: ['-c', 'exec ps -o pgid=,sess= -p $$'] })

    const numbers = (await textOf(child.stdout)).trim().split(/\s+/).map(Number)

    expect(numbers).toEqual([child.pid, child.pid])
  })

  test('tells the signal that killed a process', async () => {
    const child = start({ command: 'sh', args: ['-c', 'kill -9 $$'] })

    expect(await child.exited).toEqual({ kind: 'killed', signal: 'SIGKILL' })
  })

  test('survives writing to a process that does not read', async () => {
    const child = start({ command: 'sh', args: ['-c', 'exec <&-; exec sleep 100'], stdin: 'pipe' })

    child.stdin?.write('x'.repeat(1 << 20))

    await waitFor('a broken pipe', () => child.stdin?.destroyed === true)
    expect(child.stdin?.errored).toMatchObject({ code: 'EPIPE' })
  })

  test('adds its mark to the marks of the hosts above', async () => {
    const env = cleanEnvironment({ [marksVariable]: 'outer' })

    const child = start({ command: 'sh', args: ['-c', `echo $${marksVariable}`], env })

    expect(await textOf(child.stdout)).toMatch(/^outer,[0-9a-f]{24}\n$/)
  })
})

describe('CareProcess.gone', () => {
  test('ends what a process leaves behind in a session of its own', async () => {
    const child = startFixture(['daemon'])
    const [daemon] = await pidsOf(child, 1)

    expect(await child.gone).toEqual([])

    expect(await child.exited).toEqual({ kind: 'exited', code: 0 })
    expect(isAlive(daemon)).toBe(false)
  })

  test('ends a grandchild that holds the output open', async () => {
    const child = startFixture(['daemon', 'holding'])
    const [daemon] = await pidsOf(child, 1)

    await child.gone
    await child.closed

    expect(isAlive(daemon)).toBe(false)
  })

  test('lets what still writes output finish for a moment', async () => {
    const child = start({ command: 'sh', args: ['-c', '(sleep 0.05; echo late) & exit 0'] })

    expect(await textOf(child.stdout)).toBe('late\n')
    expect(await child.gone).toEqual([])
  })
})

describe('CareProcess.stop', () => {
  test('lets a polite process end on the end of its stdin', async () => {
    const child = startFixture(['polite'], { stdin: 'pipe' })
    await pidsOf(child, 1)

    await child.stop({ eofGraceMs: 10_000, termGraceMs: 10_000 })

    expect(await child.exited).toEqual({ kind: 'exited', code: 7 })
  })

  test('asks by SIGTERM when the end of stdin does not help', async () => {
    const child = start({ command: 'sleep', args: ['100'], stdin: 'pipe' })

    await child.stop({ eofGraceMs: 10, termGraceMs: 10_000 })

    expect(await child.exited).toEqual({ kind: 'killed', signal: 'SIGTERM' })
  })

  test('kills a process that traps SIGTERM', async () => {
    const child = startFixture(['deaf'], { stdin: 'pipe' })
    await pidsOf(child, 1)

    expect(await child.stop({ eofGraceMs: 20, termGraceMs: 20 })).toEqual([])

    expect(await child.exited).toEqual({ kind: 'killed', signal: 'SIGKILL' })
    expect(isAlive(child.pid)).toBe(false)
  })

  test('kills what a wrapper started that forwards no signal', async () => {
    const child = startFixture(['wrapper'], { stdin: 'pipe' })
    const [deaf] = await pidsOf(child, 1)

    await child.stop({ eofGraceMs: 20, termGraceMs: 5000 })

    expect(await child.exited).toEqual({ kind: 'killed', signal: 'SIGTERM' })
    expect(isAlive(deaf)).toBe(false)
  })

  test('kills descendants in sessions of their own, even one without environment', async () => {
    const child = startFixture(['daemon', 'stay'])
    const pids = await pidsOf(child, 2)

    await child.stop({ termGraceMs: 5000 })

    expect([child.pid, ...pids].filter(isAlive)).toEqual([])
  })

  test('gives the whole tree a SIGTERM and its grace when told to', async () => {
    const cleaning =
      'trap "sleep 0.1; echo cleaned; exit" TERM; echo ready; while :; do sleep 0.01; done'
    const script = `bash -c '${cleaning}' & setsid bash -c '${cleaning}' & wait`
    const child = start({ command: 'bash', args: ['-c', script] })
    let text = ''
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await waitFor('both traps', () => text === 'ready\nready\n')

    await child.stop({ termGraceMs: 10_000, target: 'tree' })

    expect(text).toBe('ready\nready\ncleaned\ncleaned\n')
  })

  test('closes the output even if nobody read it', async () => {
    const child = start({ command: 'sh', args: ['-c', 'yes'] })

    await child.stop({ termGraceMs: 1000 })

    expect(child.stdout.destroyed).toBe(true)
    expect(isAlive(child.pid)).toBe(false)
  })

  test('comes too late for a process that has exited, and is the same promise each time', async () => {
    const child = startFixture(['daemon', 'holding'])
    const [daemon] = await pidsOf(child, 1)
    await child.exited

    const stopping = child.stop({ termGraceMs: 10_000 })

    expect(child.stop({ termGraceMs: 0 })).toBe(stopping)
    expect(await stopping).toEqual([])
    expect(isAlive(daemon)).toBe(false)
  })

  test('leaves processes, files and listeners as they were after 50 runs and 20 at a time', async () => {
    await runAndStop()
    const before = [childrenOfTest(), openFiles(), process.eventNames().map(String)]

    for (let count = 0; count < 50; count += 1) await runAndStop()
    await Promise.all(Array.from({ length: 20 }, runAndStop))

    await waitFor('closed files', () => openFiles() === before[1])
    expect([childrenOfTest(), openFiles(), process.eventNames().map(String)]).toEqual(before)
  }, 30_000)
})
