import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { AppStreams } from '@deepseek-ai/dsh-app'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { main } from '../src/command.ts'
import { delegate, dsh, project, startDsh, working } from './helpers.ts'

const delegating = `${working}
- name: ./tools.ts
- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: spawn }
`

const tools = `
import { writeFileSync } from 'node:fs'
import { z } from 'zod'
export const inject = ['tools']
export function apply(ctx) {
  const register = (name, execute, parallel = false) =>
    ctx.tools.register({ name, description: name, parameters: z.object({}), parallel, execute })
  register('noisy', async () => {
    console.log('noise on stdout')
    return 'quiet'
  })
  register('deaf', () => new Promise(() => writeFileSync('deaf.started', '')))
  register('waiting', async (_args, { signal }) => {
    writeFileSync('waiting.started', '')
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    writeFileSync('waiting.ended', '')
    return ''
  })
}
`

async function started(args: readonly string[], prompt: string, yml = delegating) {
  const cwd = await project({ 'dsh.yml': yml, 'tools.ts': tools })
  return { cwd, command: startDsh(['dsh.yml', '-p', prompt, ...args], { cwd }) }
}

describe('one answer', () => {
  test('goes to stdout, what the agent does to stderr', async () => {
    const { command } = await started([], 'call noisy')

    const { code, stdout, stderr } = await command.finished

    expect(stdout).toBe('you said: quiet\n')
    expect(stderr).toBe('let me see\n* noisy\nnoise on stdout\n')
    expect(code).toBe(0)
  })

  test('is asked for on stdin with -p -', async () => {
    const cwd = await project({ 'dsh.yml': working })
    const command = startDsh(['dsh.yml', '-p', '-'], { cwd, isInteractive: true })

    command.say('from stdin')

    expect(await command.leaves()).toBe(0)
    expect(command.stdout).toBe('you said: from stdin\n')
  })

  test('may begin with dashes', async () => {
    const cwd = await project({ 'dsh.yml': working })

    expect(await dsh(['dsh.yml', '-p', '--help'], { cwd })).toMatchObject({
      stdout: 'you said: --help\n',
    })
  })

  test('gives 1 and the reason when the agent failed', async () => {
    const { command } = await started([], 'fail')

    const { code, stdout, stderr } = await command.finished

    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe('the turn failed: the model is broken (MODEL_FAILED)\n')
  })

  test('shows children as they start and end', async () => {
    const { command } = await started([], delegate('work', 'look around'))

    const { stderr } = await command.finished

    expect(stderr).toMatch(
      /^-> look around \[spawn\] started\n-> look around \[spawn\]: completed \| \d+\w+ \| 15 tokens$/m,
    )
  })

  test('has no colour where no terminal reads it', async () => {
    const { command } = await started([], delegate('work'))

    const { stdout, stderr } = await command.finished

    expect(stdout + stderr).not.toContain('\u001b')
  })
})

test('what a plugin prints goes to the front end, which knows where there is room for it', async () => {
  const cwd = await project({
    'dsh.yml': '- name: ./front.ts\n',
    'front.ts': `
export const inject = ['app']
export function apply(ctx) {
  console.log('at the start')
  const serve = async (_request, { onLog }) => {
    onLog((text) => process.stdout.write('shown: ' + JSON.stringify(text) + '\\n'))
    console.log('one %s', 'two')
    console.error('three\\nfour')
    return 0
  }
  ctx.app.registerFrontEnd({ name: 'test', serve })
  ctx.effect(() => () => console.log('at the end'))
}`,
  })

  expect(await dsh(['dsh.yml'], { cwd })).toEqual({
    code: 0,
    stdout: 'shown: "one two"\nshown: "three\\nfour"\n',
    stderr: 'at the start\nat the end\n',
  })
})

describe('--output json', () => {
  test('prints one object with the children and the tokens of all, counted once', async () => {
    const { command } = await started(
      ['--output', 'json'],
      `${delegate('one', 'first')}; ${delegate('two', 'second')}; call noisy`,
    )

    const { code, stdout, stderr } = await command.finished
    const report = JSON.parse(stdout) as { sessionId: string }

    const child = {
      sessionId: expect.any(String) as string,
      parent: report.sessionId,
      provider: 'spawn',
      stopReason: 'completed',
      usage: { inputTokens: 10, outputTokens: 5 },
      children: [],
    }
    expect(report).toEqual({
      answer: expect.stringContaining('you said: ') as string,
      stopReason: 'completed',
      sessionId: expect.any(String) as string,
      usage: { inputTokens: 40, outputTokens: 20 },
      children: [
        { ...child, label: 'first' },
        { ...child, label: 'second' },
      ],
    })
    expect(stderr).toBe('noise on stdout\n')
    expect(code).toBe(0)
  })

  test('nests the children of children', async () => {
    const { command } = await started(
      ['--output', 'json'],
      delegate(delegate('deep', 'inner'), 'outer'),
    )

    const { stdout } = await command.finished

    expect(JSON.parse(stdout)).toMatchObject({
      usage: { inputTokens: 50, outputTokens: 25 },
      children: [
        {
          label: 'outer',
          usage: { inputTokens: 30, outputTokens: 15 },
          children: [{ label: 'inner', usage: { inputTokens: 10, outputTokens: 5 }, children: [] }],
        },
      ],
    })
  })

  test('tells how a failed turn ended', async () => {
    const { command } = await started(['--output', 'json'], 'fail')

    const { code, stdout } = await command.finished

    expect(JSON.parse(stdout)).toMatchObject({
      answer: '',
      stopReason: 'error',
      error: { code: 'MODEL_FAILED', message: 'the model is broken' },
      children: [],
    })
    expect(code).toBe(1)
  })
})

describe('--output events', () => {
  test('prints every event of every session as a line, with its place in the tree', async () => {
    const { command } = await started(['--output', 'events'], delegate('work'))

    const { code, stdout } = await command.finished
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as EventLine)
    const [root] = lines
    const child = lines.find(({ depth }) => depth === 1)

    expect(root).toMatchObject({ parent: null, depth: 0, event: { seq: 0, type: 'turn/start' } })
    expect(child).toMatchObject({ parent: root?.session, event: { seq: 0, type: 'turn/start' } })
    expect(lines.at(-1)).toMatchObject({ depth: 0, event: { type: 'turn/end' } })
    for (const session of [root?.session, child?.session]) {
      const seqs = lines.filter((line) => line.session === session).map(({ event }) => event.seq)
      expect(seqs).toEqual(seqs.map((_, index) => index))
    }
    expect(code).toBe(0)
  })

  test('ends quietly when its reader goes away', async () => {
    const { cwd, command } = await started(['--output', 'events'], 'call waiting')
    await waitFor('the tool runs', () => existsSync(join(cwd, 'waiting.started')))

    command.child.stdout?.destroy()
    command.child.kill('SIGINT')

    expect(await command.finished).toMatchObject({ stderr: '' })
    expect(command.child.exitCode).toBe(141)
  })
})

interface EventLine {
  readonly session: string
  readonly parent: string | null
  readonly depth: number
  readonly event: { readonly seq: number; readonly type: string }
}

describe('the end', () => {
  test('comes with 130 after SIGINT, when the tools have ended', async () => {
    const { cwd, command } = await started([], delegate('call waiting'))
    await waitFor('the child works', () => existsSync(join(cwd, 'waiting.started')))

    command.child.kill('SIGINT')

    expect(await command.finished).toMatchObject({ code: 130 })
    expect(command.stderr).toContain('cancelled\n')
    expect(existsSync(join(cwd, 'waiting.ended'))).toBe(true)
  })

  test('comes at once after a second SIGINT and a third', async () => {
    const { cwd, command } = await started([], 'call deaf', slowToStop)
    await waitFor('the tool runs', () => existsSync(join(cwd, 'deaf.started')))

    await waitFor('it is gone', () => {
      command.child.kill('SIGINT')
      return command.child.exitCode !== null
    })

    expect(await command.finished).toMatchObject({ code: 130 })
  })

  test.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('comes after %s, when the tools have ended', async (signal, code) => {
    const { cwd, command } = await started([], 'call waiting')
    await waitFor('the tool runs', () => existsSync(join(cwd, 'waiting.started')))

    command.child.kill(signal)

    expect(await command.finished).toMatchObject({ code })
    expect(existsSync(join(cwd, 'waiting.ended'))).toBe(true)
  })

  test('comes after SIGINT while an entry never finishes loading', async () => {
    const cwd = await project({
      'dsh.yml': `${working}- name: ./slow.ts\n`,
      'slow.ts':
        "import { writeFileSync } from 'node:fs'\nexport async function apply() {\n  writeFileSync('slow.started', '')\n  await new Promise(() => {})\n}\n",
    })
    const command = startDsh(['dsh.yml', '-p', 'hi'], { cwd })
    await waitFor('it loads', () => existsSync(join(cwd, 'slow.started')))

    command.child.kill('SIGINT')

    expect(await command.finished).toEqual({ code: 130, stdout: '', stderr: '' })
  })

  test('comes after SIGINT while the prompt is read from stdin', async () => {
    const cwd = await project({ 'dsh.yml': working })
    const command = startDsh(['dsh.yml', '-p', '-'], {
      cwd,
      isInteractive: true,
      env: { NODE_DEBUG: 'stream' },
    })
    await command.sees(/STREAM \d+: read/)

    command.child.kill('SIGINT')

    expect(await command.finished).toMatchObject({ code: 130 })
  })

  test('does not wait for what a plugin left running', async () => {
    const cwd = await project({
      'dsh.yml': `${working}- name: ./leak.ts\n`,
      'leak.ts': 'export function apply() {\n  setInterval(() => {}, 1000)\n}\n',
    })

    expect(await dsh(['dsh.yml', '-p', 'hi'], { cwd })).toMatchObject({ code: 0 })
  })

  test('does not come with a rejection that nobody handles', async () => {
    const cwd = await project({
      'dsh.yml': `${working}- name: ./rejects.ts\n`,
      'rejects.ts': "export function apply() {\n  void Promise.reject(new Error('oops'))\n}\n",
    })

    const { code, stdout, stderr } = await dsh(['dsh.yml', '-p', 'hi'], { cwd })

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'you said: hi\n' })
    expect(stderr).toBe('dsh: an error that nobody caught: oops (rejects.ts:2)\n')
  })

  test.each([
    ['a rejection', "Promise.reject(new Error('late'))"],
    ['an exception', "setImmediate(() => { throw new Error('late') })"],
  ])('is not changed by %s after the answer, which is told in one line', async (_what, fails) => {
    const cwd = await project({
      'dsh.yml': `${working}- name: ./late.ts\n`,
      'late.ts': `export function apply(ctx) {\n  ctx.effect(() => () => void setTimeout(() => void ${fails}, 50))\n}\n`,
    })

    const { code, stdout, stderr } = await dsh(['dsh.yml', '-p', 'hi'], { cwd })

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'you said: hi\n' })
    expect(stderr).toBe('dsh: an error that nobody caught: late (late.ts:2)\n')
  })

  test('comes with 1 and the reason after an exception that nobody catches', async () => {
    const cwd = await project({
      'dsh.yml': `${working}- name: ./throws.ts\n`,
      'throws.ts':
        "export function apply() {\n  setImmediate(() => {\n    throw new Error('oops')\n  })\n}\n",
    })

    const { code, stderr } = await dsh(['dsh.yml', '-p', 'hang'], { cwd })

    expect(stderr).toMatch('dsh: an error that nobody caught: oops (throws.ts:3)\n')
    expect(code).toBe(1)
  })
})

/** How many listeners the process has for what ends it. */
function count(): number[] {
  return ['unhandledRejection', 'uncaughtException', 'SIGINT', 'SIGTERM', 'SIGHUP'].map((event) =>
    process.listenerCount(event),
  )
}

test('an embedder of the command is left without its listeners', async () => {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  const before = count()

  expect(await main(['--help'], streams as unknown as AppStreams)).toBe(0)

  expect(count()).toEqual(before)
  expect(streams.stdout.listenerCount('error')).toBe(0)
})

/** Agents that would wait for their tools for a minute. */
const slowToStop = `${working.replace("core'", "core'\n  config: { abortGraceMs: 60000 }")}- name: ./tools.ts\n`

describe('the environment', () => {
  test('has the variables of a .env beside the configuration, unless they are set', async () => {
    const cwd = await project({
      'conf/dsh.yml': `${working.replace('./model', '../model')}- name: ./shows.ts\n`,
      'conf/.env': 'DSH_TEST_A=file\nDSH_TEST_B=file\n',
      'conf/shows.ts':
        'export function apply() {\n  console.log(process.env.DSH_TEST_A, process.env.DSH_TEST_B)\n}\n',
    })

    const { stderr } = await dsh(['conf/dsh.yml', '-p', 'hi'], {
      cwd,
      env: { DSH_TEST_B: 'ambient' },
    })

    expect(stderr).toBe('file ambient\n')
  })

  test('works in the folder that --cwd names', async () => {
    const cwd = await project({
      'dsh.yml': `${working}- name: ./where.ts\n`,
      'work/empty': '',
      'where.ts':
        "import { z } from 'zod'\nexport const inject = ['tools']\nexport function apply(ctx) {\n  ctx.tools.register({ name: 'where', description: '', parameters: z.object({}), execute: async (_, { agent }) => agent.cwd })\n}\n",
    })

    const { stdout } = await dsh(['dsh.yml', '-p', 'call where', '--cwd', 'work'], { cwd })

    expect(stdout).toBe(`you said: ${join(cwd, 'work')}\n`)
  })

  test('loads a configuration whose folder has a name that no URL would have', async () => {
    const cwd = await project({
      'my #1 50% folder/dsh.yml': working,
      'my #1 50% folder/model.ts': await readFile(join(await project(), 'model.ts'), 'utf8'),
    })

    expect(await dsh(['my #1 50% folder/dsh.yml', '-p', 'hi'], { cwd })).toMatchObject({ code: 0 })
  })
})

describe('help and version', () => {
  test('are printed on stdout with 0', async () => {
    const cwd = await project()

    const help = await dsh(['--help'], { cwd })
    const version = await dsh(['--version'], { cwd })

    expect(help).toMatchObject({ code: 0, stderr: '' })
    for (const option of [
      '--prompt',
      '--output',
      '--cwd',
      '--model',
      '--resume',
      '--help',
      '--version',
      'Exit codes',
    ]) {
      expect(help.stdout).toContain(option)
    }
    const codes = help.stdout
      .slice(help.stdout.indexOf('Exit codes'))
      .match(/(?<=[:,]\s)\d+(?= \w)/g)
    expect(codes).toEqual(['0', '1', '2', '129', '130', '141', '143'])
    expect(version).toMatchObject({ code: 0, stderr: '' })
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})

test('is ready within the time that a person waits for', async () => {
  const cwd = await project({ 'dsh.yml': delegating, 'tools.ts': tools })
  const startedAt = performance.now()
  const command = startDsh(['dsh.yml'], { cwd, isInteractive: true })

  await command.sees('model parrot')

  expect(performance.now() - startedAt).toBeLessThan(5000)
})
