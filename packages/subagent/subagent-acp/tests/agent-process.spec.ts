import { execFile } from 'node:child_process'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { childPids, createBench, delegateOnce, fixture, isAlive, textOf } from './helpers.ts'

const hint = ': a command that speaks the Agent Client Protocol on stdin and stdout is expected'

describe('a command', () => {
  test('that ends at once is said to be no agent', async () => {
    const result = await delegateOnce({ command: 'true' })

    expect(result).toEqual({
      output: [],
      stopReason: 'error',
      diagnostic: `the agent "true" exited with code 0 at initialize${hint}`,
    })
  })

  test('that gives back what it reads is said to be no agent', async () => {
    const { diagnostic } = await delegateOnce({ command: 'cat' })

    expect(diagnostic).toContain('the agent failed at initialize: "Method not found": initialize')
    expect(diagnostic).toContain(hint)
  })

  test.each([
    ['says nothing', { command: 'sleep', args: ['60'] }, ''],
    ['talks without end', { command: 'yes' }, '\nstdout (its end): y\ny\ny\n'],
  ])('that %s is given up, and said to be no agent', async (_name, config, remark) => {
    const result = await delegateOnce({ ...config, handshakeTimeoutMs: 200, disposeEofGraceMs: 0 })

    expect(result.stopReason).toBe('error')
    const text = `the agent "${config.command}" gave no answer to initialize within 200 ms${hint}${remark}`
    expect(result.diagnostic?.slice(0, text.length)).toBe(text)
  })

  test('that is given up is killed', async () => {
    const { start } = await createBench({
      ...fixture('silent', 'session/new'),
      handshakeTimeoutMs: 2000,
    })
    const run = start()
    const pids = childPids()

    const { diagnostic } = await run.result
    await run.dispose()

    expect(diagnostic).toMatch(/gave no answer to session\/new within 2000 ms/)
    expect(pids.length).toBeGreaterThan(0)
    expect(pids.filter(isAlive)).toEqual([])
  })

  test('that is not there, cannot run, or lacks its interpreter gets a message of its own', async () => {
    const missing = await delegateOnce({ command: 'no-such-agent' })
    const files = { script: '#!/no/such/interpreter\n' }
    const { ctx, delegate } = await createBench({ command: './script' }, { files })
    const denied = await delegate()
    const script = join(fileURLToPath(ctx.baseUrl ?? ''), 'script')
    await chmod(script, 0o755)
    const orphaned = await delegate()

    expect(missing).toEqual({
      output: [],
      stopReason: 'error',
      diagnostic: 'no command "no-such-agent"; is it installed and on PATH?',
    })
    expect(denied.diagnostic).toBe(
      `command "${script}" is not executable; try chmod +x "${script}"`,
    )
    expect(orphaned.diagnostic).toBe(
      `command "${script}" needs the interpreter "/no/such/interpreter", which is not there`,
    )
  })
})

describe('an agent that ends', () => {
  test.each([
    ['start', '3', 'initialize', 'exited with code 3', hint],
    ['initialize', '4', 'initialize', 'exited with code 4', hint],
    ['initialize', 'SIGSEGV', 'initialize', 'was killed by SIGSEGV', hint],
    ['session/new', '5', 'session/new', 'exited with code 5', ''],
    ['session/prompt', '0', 'session/prompt', 'exited with code 0', ''],
    ['session/prompt', 'SIGKILL', 'session/prompt', 'was killed by SIGKILL', ''],
  ])(
    'at %s by %s fails with how it ended and what it said last',
    async (at, how, method, fact, more) => {
      const result = await delegateOnce(fixture('crashes', at, how))

      const reason = `the agent "${process.execPath}" ${fact} at ${method}${more}\nstderr (its end): `
      expect(result.stopReason).toBe('error')
      expect(result.diagnostic?.slice(0, reason.length)).toBe(reason)
      expect(result.diagnostic).toMatch(/so long the last words$/)
      expect(result.diagnostic?.length).toBeLessThan(reason.length + 1025)
      expect(textOf(result)).toBe(at === 'session/prompt' ? 'partial' : '')
    },
  )

  test.each(['0', '1', 'SIGKILL'])('by %s right after its response has completed', async (how) => {
    const result = await delegateOnce(fixture('crashes', 'after', how))

    expect(result).toEqual({
      output: [{ type: 'text', text: 'all of it' }],
      stopReason: 'completed',
    })
  })

  test('leaves the next run unharmed', async () => {
    const program = fixture('plain').args.join(' ')
    const script = `test -e crashed && exec "${process.execPath}" ${program}; touch crashed; exit 9`
    const { delegate } = await createBench({ command: 'sh', args: ['-c', script] })

    const first = await delegate()
    const second = await delegate()

    expect(first.diagnostic).toMatch(/^the agent "sh" exited with code 9 at initialize/)
    expect(second).toEqual({ output: [{ type: 'text', text: 'hello' }], stopReason: 'completed' })
  })

  test('while a child of it holds its output does not keep the result', async () => {
    const result = await delegateOnce(fixture('leaves', 'mid-turn'))

    expect(result.diagnostic).toMatch(/exited with code 0 at session\/prompt$/)
    expect(isAlive(Number(textOf(result)))).toBe(false)
  })

  test('while a process that got away holds its output does not keep the result', async () => {
    const result = await delegateOnce(fixture('leaves', 'mid-turn', 'escaped'))

    const pid = Number(textOf(result))
    const isHolding = isAlive(pid)
    process.kill(pid, 'SIGKILL')
    expect(isHolding).toBe(true)
    expect(result.diagnostic).toMatch(/exited with code 0 at session\/prompt$/)
  })

  test('its turn, while a child of it holds its output, has completed', async () => {
    const result = await delegateOnce(fixture('leaves'))

    expect(result.stopReason).toBe('completed')
    expect(isAlive(Number(textOf(result)))).toBe(false)
  })

  test('only its output fails, with the text so far', async () => {
    const result = await delegateOnce({ ...fixture('hangs-up'), disposeEofGraceMs: 0 })

    expect(result).toEqual({
      output: [{ type: 'text', text: 'and then' }],
      stopReason: 'error',
      diagnostic: `the agent "${process.execPath}" closed its output at session/prompt`,
    })
  })
})

describe('the SDK of the protocol', () => {
  test('is imported for the first agent, and not before', async () => {
    const program = fileURLToPath(new URL('fixtures/tells-imports.ts', import.meta.url))

    const { stdout } = await promisify(execFile)(process.execPath, [program])

    expect(JSON.parse(stdout)).toEqual({ withBackend: false, withAgent: true })
  })
})
