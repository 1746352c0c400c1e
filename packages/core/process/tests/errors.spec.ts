import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { cleanEnvironment, type ProcessError, startError, type StartOptions } from '../src/index.ts'
import { start, startFixture, textOf } from './helpers.ts'

async function errorOf(
  options: Partial<StartOptions> & { command: string },
): Promise<ProcessError> {
  const exit = await start(options).exited
  if (exit.kind !== 'failed') throw new Error(`it ended: ${JSON.stringify(exit)}`)
  return exit.error
}

async function script(folder: string, name: string, text: string, mode = 0o755): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, text)
  await chmod(path, mode)
  return path
}

describe('startProcess', () => {
  test('tells a missing command', async () => {
    const error = await errorOf({ command: 'no-such-command' })

    expect(error).toMatchObject({
      name: 'ProcessError',
      code: 'COMMAND_NOT_FOUND',
      message: 'no command "no-such-command"; is it installed and on PATH?',
    })
  })

  test('tells a missing file', async () => {
    const error = await errorOf({ command: './no-such-file' })

    expect(error).toMatchObject({ code: 'COMMAND_NOT_FOUND' })
    expect(error.message).toBe('no command "./no-such-file"; is there no such file?')
  })

  test('tells a missing working folder', async () => {
    const cwd = join(await temporaryFolder(), 'gone')

    const error = await errorOf({ command: 'true', cwd })

    expect(error).toMatchObject({ code: 'CWD_MISSING' })
    expect(error.message).toBe(`the working folder "${cwd}" does not exist`)
  })

  test('tells a working folder that is a file', async () => {
    const cwd = await script(await temporaryFolder(), 'file', '')

    const error = await errorOf({ command: 'true', cwd })

    expect(error).toMatchObject({ code: 'CWD_NOT_A_DIRECTORY' })
    expect(error.message).toContain(`"${cwd}"`)
  })

  test('tells a working folder that may not be entered', async () => {
    const cwd = join(await temporaryFolder(), 'closed')
    await mkdir(cwd, { mode: 0o000 })
    await chmod(join(cwd, '..'), 0o755)

    // Root enters every folder, so somebody else tries.
    const child = startFixture(['enters', cwd])

    expect(await textOf(child.stdout)).toBe(
      `CWD_NOT_ENTERABLE the working folder "${cwd}" may not be entered by this user; change its permissions`,
    )
  })

  test('tells a file that is not executable', async () => {
    const folder = await temporaryFolder()
    const path = await script(folder, 'tool', '#!/bin/sh\n', 0o644)

    const byPath = await errorOf({ command: './tool', cwd: folder })
    const byName = await errorOf({ command: 'tool', env: { PATH: `/nowhere:${folder}` } })

    expect([byPath.code, byName.code]).toEqual(['COMMAND_NOT_EXECUTABLE', 'COMMAND_NOT_EXECUTABLE'])
    expect(byPath.message).toBe(`command "./tool" is not executable; try chmod +x "${path}"`)
  })

  test.each([
    ['#!/no/such/interpreter -x\n', '"/no/such/interpreter"'],
    ['#!/bin/sh\r\n', String.raw`"/bin/sh\r"`],
  ])('tells the missing interpreter of %j', async (text, interpreter) => {
    const command = await script(await temporaryFolder(), 'tool', text)

    const error = await errorOf({ command })

    expect(error).toMatchObject({ code: 'INTERPRETER_MISSING' })
    expect(error.message).toBe(
      `command "${command}" needs the interpreter ${interpreter}, which is not there`,
    )
  })

  test.each([
    [{ args: ['a\0b'] }, 'arguments and environment may hold no null byte'],
    [{ env: { PATH: 'secret\0' } }, 'arguments and environment may hold no null byte'],
    [
      { args: ['x'.repeat(1 << 22)] },
      'its arguments or its environment are too long; put the text into a file',
    ],
  ])('tells arguments that cannot be passed: case %#', async (options, reason) => {
    const error = await errorOf({ command: 'true', ...options })

    expect(error.code).toBe('START_FAILED')
    expect(error.message).toBe(`command "true" could not be started: ${reason}`)
    expect(String(error.cause)).not.toContain('secret')
  })

  test('leaves a process that failed to start closed, gone and free to be stopped', async () => {
    const child = start({ command: 'no-such-command', stdin: 'pipe' })
    child.stdin?.write('lost')

    await child.closed

    expect(await child.gone).toEqual([])
    expect(await child.stop({ termGraceMs: 0, eofGraceMs: 0 })).toEqual([])
    expect(child.pid).toBeUndefined()
  })
})

describe('startError', () => {
  test('never quotes the environment', () => {
    const env = cleanEnvironment({ PATH: '/secret-path', API_KEY: 'secret-value' })

    const error = startError({ command: 'x', cwd: '/', env }, new Error('spawn x ENOENT'))

    expect(`${error.message} ${String(error.cause)}`).not.toContain('secret')
  })

  test('gives the cause when the file system explains nothing', () => {
    const cause = new Error('spawn true EAGAIN')

    const error = startError({ command: 'true', cwd: '/', env: cleanEnvironment() }, cause)

    expect(error).toMatchObject({ code: 'START_FAILED', cause })
    expect(error.message).toBe('command "true" could not be started: spawn true EAGAIN')
  })
})
