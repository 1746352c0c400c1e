import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SubagentResult, SubagentStartRequest } from '@deepseek-ai/dsh-subagent'
import { bootYml, temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test, vi } from 'vitest'
import { Config } from '../src/index.ts'
import { childPids, createBench, delegateOnce, fixture, textOf, ymlWith } from './helpers.ts'

interface Told {
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly args: readonly string[]
  readonly session: { readonly cwd: string }
}

function toldBy(result: SubagentResult): Told {
  return JSON.parse(textOf(result)) as Told
}

describe('the backend', () => {
  test('is a provider that keeps no start-time promise', async () => {
    const { ctx } = await createBench(fixture('plain'))

    expect(ctx.subagents.getProvider('acp')).toMatchObject({
      name: 'acp',
      capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
      inheritsParentContext: false,
    })
  })

  test('can be loaded several times, under different names', async () => {
    const one = { providerName: 'one', ...fixture('tells', '1') }
    const two = { providerName: 'two', ...fixture('tells', '2') }
    const { ctx, delegate, parent } = await createBench(one, {}, two)
    const other = ctx.subagents.start('two', { prompt: 'go', parent })

    const [told, otherTold] = await Promise.all([delegate(), other.result])
    await other.dispose()

    expect(ctx.subagents.list()).toEqual(['one', 'two'])
    expect(toldBy(told).args).toEqual(['1'])
    expect(toldBy(otherTold).args).toEqual(['2'])
  })

  test.each<[string, Partial<SubagentStartRequest>, string]>([
    ['outputSchema', { outputSchema: { type: 'object' } }, 'UNSUPPORTED_CAPABILITY'],
    ['maxDepth', { maxDepth: 3 }, 'UNSUPPORTED_CAPABILITY'],
    ['toolFilter', { toolFilter: { deny: ['bash'] } }, 'UNSUPPORTED_CAPABILITY'],
    ['agentOptions', { agentOptions: { model: 'm' } }, 'INVALID_REQUEST'],
  ])('refuses %s before it starts anything', async (_name, extra, code) => {
    const { start } = await createBench(fixture('plain'))
    const before = childPids()

    expect(() => start('go', extra)).toThrow(expect.objectContaining({ code }) as Error)
    expect(childPids()).toEqual(before)
  })

  test('names the option that it cannot take, and what to do', async () => {
    const { start } = await createBench(fixture('plain'))
    const agentOptions = { model: undefined, maxSteps: 3 }

    expect(() => start('go', { agentOptions })).toThrow(
      'subagent provider "acp" cannot take agentOptions "maxSteps": its agent is set up where it is loaded (model, mode, args, env)',
    )
  })

  test('takes agentOptions in which nothing is set', async () => {
    const { delegate } = await createBench(fixture('plain'))

    expect((await delegate('go', { agentOptions: { model: undefined } })).stopReason).toBe(
      'completed',
    )
  })
})

describe('Config', () => {
  test('has defaults for all but the command', () => {
    expect(Config({ command: 'agent' })).toEqual({
      providerName: 'acp',
      command: 'agent',
      args: [],
      env: {},
      permission: 'reject',
      handshakeTimeoutMs: 30_000,
      disposeEofGraceMs: 6000,
      disposeGraceMs: 3000,
    })
  })

  test.each<[object, string]>([
    [{ command: undefined }, '$.command missing required value'],
    [{ command: '' }, '$.command expected string length >= 1 but got 0'],
    [{ providerName: '' }, '$.providerName expected string length >= 1 but got 0'],
    [{ permission: 'ask' }, '$.permission expected "reject" | "allow" but got "ask"'],
    [{ handshakeTimeoutMs: 0 }, '$.handshakeTimeoutMs expected number >= 1 but got 0'],
    [
      { handshakeTimeoutMs: 600_001 },
      '$.handshakeTimeoutMs expected number <= 600000 but got 600001',
    ],
    [{ handshakeTimeoutMs: '9' }, '$.handshakeTimeoutMs expected number but got 9'],
    [{ disposeEofGraceMs: -1 }, '$.disposeEofGraceMs expected number >= 0 but got -1'],
    [
      { disposeEofGraceMs: 600_001 },
      '$.disposeEofGraceMs expected number <= 600000 but got 600001',
    ],
    [{ disposeGraceMs: 1.5 }, '$.disposeGraceMs expected number multiple of 1 but got 1.5'],
    [{ args: ['a', null] }, '$.args[1] missing required value'],
    [{ env: { PORT: 80 } }, '$.env.PORT expected string but got 80'],
    [{ cwd: '' }, '$.cwd expected string length >= 1 but got 0'],
  ])('refuses %j, and names the key', (wrong, message) => {
    const config = { command: 'agent', ...wrong } as Parameters<typeof Config>[0]

    expect(() => Config(config)).toThrow(message)
  })

  test('that is wrong fails its entry when it loads', async () => {
    const yml = ymlWith({ command: 'agent', disposeGraceMs: -1 })

    const ctx = await bootYml(yml, { expectErrors: /\$\.disposeGraceMs expected number >= 0/ })

    expect(ctx.subagents.list()).toEqual([])
  })

  test('counts an empty yml value as omitted', async () => {
    const empty = { cwd: null, model: null, mode: null, authMethod: null, env: null }

    const result = await delegateOnce({ ...fixture('plain'), ...(empty as object) })

    expect(result.stopReason).toBe('completed')
  })
})

describe('the environment of an agent', () => {
  test('has what a program needs and nothing secret, and what the config says', async () => {
    vi.stubEnv('SOME_API_KEY', 'secret')
    vi.stubEnv('db_password', 'secret')
    vi.stubEnv('NODE_OPTIONS', '--no-warnings')
    vi.stubEnv('SSH_AUTH_SOCK', '/tmp/socket')
    vi.stubEnv('CLAUDECODE', '1')
    vi.stubEnv('LC_ALL', 'C')
    const env = { SOME_API_KEY: 'given', EMPTY: '', LANG: 'xx' }

    const told = toldBy(await delegateOnce({ ...fixture('tells'), env }))

    expect(told.env).toMatchObject({ PATH: process.env['PATH'], LC_ALL: 'C', ...env })
    const names = ['db_password', 'NODE_OPTIONS', 'SSH_AUTH_SOCK', 'CLAUDECODE']
    expect(names.filter((name) => name in told.env)).toEqual([])
    vi.unstubAllEnvs()
  })
})

describe('the folder of an agent', () => {
  test('is that of its parent', async () => {
    const { delegate, parent } = await createBench(fixture('tells'))

    const told = toldBy(await delegate())

    expect([told.cwd, told.session.cwd]).toEqual([parent.cwd, parent.cwd])
  })

  test('is that of the config, which may be relative to the yml', async () => {
    const folder = await temporaryFolder()
    const absolute = toldBy(await delegateOnce({ ...fixture('tells'), cwd: folder }))
    const { ctx, delegate } = await createBench({ ...fixture('tells'), cwd: './inner' })
    const inner = join(fileURLToPath(ctx.baseUrl ?? ''), 'inner')
    await mkdir(inner)

    const relative = toldBy(await delegate())

    expect([absolute.cwd, absolute.session.cwd]).toEqual([folder, folder])
    expect([relative.cwd, relative.session.cwd]).toEqual([inner, inner])
  })

  test('must exist and be a folder', async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'file'), '')

    const missing = await delegateOnce({ ...fixture('plain'), cwd: join(folder, 'none') })
    const file = await delegateOnce({ ...fixture('plain'), cwd: join(folder, 'file') })

    expect(missing).toEqual({
      output: [],
      stopReason: 'error',
      diagnostic: `the working folder "${folder}/none" does not exist`,
    })
    expect(file.diagnostic).toBe(`the working folder "${folder}/file" is not a folder`)
  })
})
