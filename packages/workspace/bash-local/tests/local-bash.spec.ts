import { getEventListeners } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gate, temporaryFolder, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { createBash, fixture, isAlive, leftovers, pidsIn, run } from './helpers.ts'

describe('LocalBash.execute', () => {
  test('runs a command in its folder and gives code and output', async () => {
    const cwd = await temporaryFolder()

    const result = await run('echo "$PWD"; exit 3', { cwd })

    expect(result).toEqual({
      exitCode: 3,
      output: `${cwd}\n`,
      isTruncated: false,
      isTimedOut: false,
      isAborted: false,
      durationMs: expect.any(Number),
    })
  })

  test('keeps the order of stdout and stderr', async () => {
    const { output } = await run(
      'for i in 1 2 3; do echo out$i; echo err$i >&2; done; no-such-tool',
    )

    expect(output).toMatch(
      /^out1\nerr1\nout2\nerr2\nout3\nerr3\n.*no-such-tool: command not found\n$/,
    )
  })

  test('gives an empty stdin and no terminal', async () => {
    const { output } = await run('cat; tty; read line </dev/tty || echo none')

    expect(output).toMatch(/^not a tty\n[^]*none\n$/)
  })

  test('reads no start-up file', async () => {
    const home = await temporaryFolder()
    await Promise.all(
      ['.bashrc', '.bash_profile', '.profile', 'env'].map((name) =>
        writeFile(join(home, name), 'echo loaded\n'),
      ),
    )
    process.env['BASH_ENV'] = join(home, 'env')

    const { output } = await run('echo $HOME', { env: { HOME: home } }).finally(
      () => delete process.env['BASH_ENV'],
    )

    expect(output).toBe(`${home}\n`)
  })

  test('passes no secret on, and lets config win over the ambient and the request over config', async () => {
    process.env['MY_API_KEY'] = 'ambient'
    const bash = createBash({ env: { A: 'config', B: 'config', GIVEN_TOKEN: 'config' } })

    const { output } = await run(
      'echo "$MY_API_KEY,$A,$B,$GIVEN_TOKEN"',
      { env: { B: 'request' } },
      bash,
    ).finally(() => delete process.env['MY_API_KEY'])

    expect(output).toBe(',config,request,config\n')
  })

  test('tells each piece of output as it comes, joining split characters', async () => {
    const pieces: string[] = []
    const first = gate()
    const onOutput = (text: string): void => {
      pieces.push(text)
      first.open()
    }
    const folder = await temporaryFolder()

    const running = run(
      String.raw`printf 'a\xc3'; until [ -e go ]; do sleep 0.01; done; printf '\xa9b'`,
      {
        cwd: folder,
        onOutput,
      },
    )
    await first.opened
    await writeFile(join(folder, 'go'), '')
    const { output } = await running

    expect(pieces).toEqual(['a', 'éb'])
    expect(output).toBe('aéb')
  })

  test('tells the signal that killed the shell', async () => {
    expect(await run('kill -9 $$')).toMatchObject({ signal: 'SIGKILL', isAborted: false })
  })

  test('runs by the shell that config names', async () => {
    const bash = createBash({ shell: '/bin/sh' })

    expect((await run('echo "$0"', {}, bash)).output).toBe('/bin/sh\n')
  })

  test.each(['/bin/bash', '/bin/sh'])('takes no command for an option of %s', async (shell) => {
    const bash = createBash({ shell })

    const { output } = await run('--version || echo none', {}, bash)

    expect(output).toMatch(/ --version: .*not found\nnone\n$/)
  })

  test('rejects when the folder is not there', async () => {
    await expect(run('true', { cwd: '/no/such/folder' })).rejects.toMatchObject({
      code: 'CWD_MISSING',
      message: 'the working folder "/no/such/folder" does not exist',
    })
  })

  test('rejects a command that cannot be passed', async () => {
    await expect(run('echo a\0b')).rejects.toMatchObject({ code: 'START_FAILED' })
  })
})

describe('LocalBash.execute, when a command leaves processes behind', () => {
  test('ends a background job that holds the output', async () => {
    const { output, exitCode } = await run('sleep 1000 & echo pid $!')

    expect(exitCode).toBe(0)
    expect(pidsIn(output).map(isAlive)).toEqual([false])
  })

  test('ends a daemon in a session of its own that ignores SIGTERM and holds the output', async () => {
    const { output, exitCode } = await run(fixture('daemon'))

    expect(exitCode).toBe(0)
    expect(pidsIn(output).map(isAlive)).toEqual([false])
  })

  test('takes the last output of a process that the shell did not wait for', async () => {
    const { output } = await run('echo one > >(sleep 0.05; cat)')

    expect(output).toBe('one\n')
  })
})

describe('LocalBash.execute, when the time is up', () => {
  test('ends the command and keeps its output', async () => {
    const result = await run('echo pid $$; sleep 1000', { timeoutMs: 1000 })

    expect(result).toMatchObject({ isTimedOut: true, isAborted: false, signal: 'SIGTERM' })
    expect(pidsIn(result.output).map(isAlive)).toEqual([false])
  })

  test('lets programs clean up on SIGTERM', async () => {
    const script = `node -e 'process.on("SIGTERM", () => { console.log("cleaned"); process.exit() }); setInterval(() => {}, 9); console.log("ready")'`
    const controller = new AbortController()

    const result = await run(script.replace('node', process.execPath), {
      signal: controller.signal,
      onOutput: () => controller.abort(),
    })

    expect(result.output).toBe('ready\ncleaned\n')
  })

  test('takes the limit of config when the request names none', async () => {
    const bash = createBash({ timeoutMs: 50 })

    expect(await run('sleep 1000', {}, bash)).toMatchObject({ isTimedOut: true })
  })
})

describe('LocalBash.execute, when it is aborted', () => {
  test('starts nothing for a signal that is aborted already', async () => {
    const cwd = await temporaryFolder()

    const result = await run('touch ran', { cwd, signal: AbortSignal.abort() })

    expect(result).toMatchObject({ isAborted: true, output: '' })
    expect(existsSync(join(cwd, 'ran'))).toBe(false)
  })

  test('ends a command that is just starting', async () => {
    const controller = new AbortController()
    const cwd = await temporaryFolder()

    const running = run('sleep 1000; touch ran', { cwd, signal: controller.signal })
    controller.abort()

    expect(await running).toMatchObject({ isAborted: true, isTimedOut: false })
    expect(existsSync(join(cwd, 'ran'))).toBe(false)
  })

  test('ends a command that runs, with all its processes', async () => {
    const controller = new AbortController()
    let text = ''
    const running = run('sleep 1000 & echo pid $!; setsid sleep 1000 & echo pid $!; wait', {
      signal: controller.signal,
      onOutput: (piece) => (text += piece),
    })
    await waitFor('both pids', () => pidsIn(text).length === 2)

    controller.abort()

    expect(await running).toMatchObject({ isAborted: true, output: text })
    expect(pidsIn(text).map(isAlive)).toEqual([false, false])
  })

  test('kills a whole tree that ignores SIGTERM', async () => {
    const controller = new AbortController()
    let text = ''
    const bash = createBash({ graceMs: 50 })
    const command = `trap '' TERM; sleep 1000 & echo pid $!; ${fixture('daemon')}; sleep 1000`
    const onOutput = (piece: string): void => void (text += piece)
    const running = run(command, { signal: controller.signal, onOutput }, bash)
    await waitFor('both pids', () => pidsIn(text).length === 2)

    controller.abort()

    expect(await running).toMatchObject({ isAborted: true, signal: 'SIGKILL' })
    expect(pidsIn(text).map(isAlive)).toEqual([false, false])
  })

  test('changes nothing after the command has ended', async () => {
    const controller = new AbortController()

    const result = await run('exit 2', { signal: controller.signal })
    controller.abort()

    expect(result).toMatchObject({ exitCode: 2, isAborted: false })
  })

  test('ends what is left behind, and keeps the code of a shell that has exited', async () => {
    const controller = new AbortController()
    let text = ''
    const running = run('echo pid $$; sleep 1000 & echo pid $!; exit 2', {
      signal: controller.signal,
      onOutput: (piece) => (text += piece),
    })
    await waitFor('the shell to be gone', () => {
      const [shell, job] = pidsIn(text)
      return job !== undefined && !existsSync(`/proc/${shell}`)
    })

    controller.abort()

    expect(await running).toMatchObject({ exitCode: 2, isAborted: false })
    expect(pidsIn(text).map(isAlive)).toEqual([false, false])
  })

  test('leaves no listener on a signal that lives long', async () => {
    const { signal } = new AbortController()
    const bash = createBash()

    await Promise.all(Array.from({ length: 20 }, () => run('true', { signal }, bash)))

    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

describe('LocalBash', () => {
  test('leaves nothing behind after 50 commands and 20 at a time', async () => {
    const bash = createBash()
    const command = 'sleep 1000 >/dev/null 2>&1 & echo x'
    await run(command, {}, bash)
    const before = leftovers()

    for (let count = 0; count < 50; count += 1) await run(command, {}, bash)
    const results = await Promise.all(Array.from({ length: 20 }, () => run(command, {}, bash)))

    expect(results.map(({ output }) => output)).toEqual(Array.from({ length: 20 }, () => 'x\n'))
    expect(leftovers()).toEqual(before)
  }, 30_000)

  test('aborts what runs when it is disposed, and refuses what comes then', async () => {
    const bash = createBash()
    let text = ''
    const running = run('echo pid $$; sleep 1000', { onOutput: (piece) => (text += piece) }, bash)
    await waitFor('the pid', () => pidsIn(text).length === 1)

    await bash.dispose()

    expect(pidsIn(text).map(isAlive)).toEqual([false])
    expect(await running).toMatchObject({ isAborted: true })
    await expect(run('true', {}, bash)).rejects.toMatchObject({ code: 'EXECUTOR_DISPOSED' })
  })

  test.each([
    [{ timeoutMs: 20_001 }, 'timeoutMs "20001" must not be above maxTimeoutMs "20000"'],
    [{ maxFileBytes: 999 }, 'maxFileBytes "999" must not be below maxOutputBytes "1000"'],
    [{ shell: '/no/shell' }, 'shell "/no/shell" must be the absolute path of a program'],
    [{ shell: 'bash' }, 'shell "bash" must be the absolute path of a program'],
  ])('refuses the config %j', (config, message) => {
    expect(() => createBash(config)).toThrow(
      expect.objectContaining({ code: 'INVALID_CONFIG', message }),
    )
  })
})
