/** Drives the example with acpx, a client that knows nothing of dsh; it is installed for this test only. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startModelServer, waitFor } from '@deepseek-ai/dsh-testkit'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { type Copy, copyOfExample, dsh, isAlive, temporaryInstall } from './helpers.ts'

const task = 'Document priceTag of src/price.js in docs/price.md.'
const run = promisify(execFile)
let cli: string

beforeAll(async () => {
  cli = join(await temporaryInstall('acpx@0.19.1'), 'node_modules/acpx/dist/cli.js')
}, 300_000)

vi.setConfig({ testTimeout: 120_000 })

describe('acpx', () => {
  test('has a task done, permits what is asked, and ends the agent', async () => {
    const copy = await copyOfExample()

    const { code, stdout } = await drive(copy, 'cordis.demo.yml', [
      '--approve-all',
      '--format',
      'json',
      'exec',
      task,
    ])

    expect(code).toBe(0)
    const frames = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Frame)
    expect(frames.at(-1)).toMatchObject({ result: { stopReason: 'end_turn' } })
    expect(frames.filter(({ method }) => method === 'session/request_permission')).toHaveLength(1)
    expect(await documentOf(copy)).toContain('The price tag of')
  })

  test('refuses what is asked, and hears so', async () => {
    const copy = await copyOfExample()

    const { stdout } = await drive(copy, 'cordis.demo.yml', ['--deny-all', 'exec', task])

    expect(stdout).toContain('I did not write it: the user does not allow')
    expect(await documentOf(copy)).toBe('')
  })

  test('goes on with a session in another process', async () => {
    const copy = await copyOfExample()
    const env = { DSH_DEMO_SESSIONS: join(copy.state, 'demo') }
    const session = (...args: string[]): Promise<Driven> =>
      drive(copy, 'cordis.demo.yml', ['--ttl', '1', '--approve-all', ...args], env)

    const ended = (): Promise<void> =>
      waitFor('its processes have ended', async () => {
        const { stdout } = await session('status')
        return stdout.includes('pid: -')
      })
    await session('sessions', 'new')
    await session('prompt', 'hello')
    await ended()
    const { code, stdout } = await session('prompt', 'hello again')
    await ended()

    expect(code).toBe(0)
    expect(stdout).toMatch(/session\/(load|resume)/)
    expect(stdout).toContain('I am a script')
  })

  test('gives up after its own time limit, and leaves no command behind', async () => {
    const copy = await copyOfExample()
    const command = 'echo $$ > shell; exec sleep 300'
    const model = await startModelServer([{ calls: [{ name: 'bash', input: { command } }] }])
    const env = { OPENAI_BASE_URL: model.baseURL, OPENAI_API_KEY: 'key', OPENAI_MODEL: 'local' }

    const { code } = await drive(
      copy,
      'cordis.yml',
      ['--timeout', '5', '--approve-all', 'exec', 'wait'],
      env,
    )

    const pid = Number(await readFile(join(copy.project, 'shell'), 'utf8'))
    expect(code).not.toBe(0)
    await waitFor('the command is gone', () => !isAlive(pid))
  })
})

type Frame = Record<string, unknown>

interface Driven {
  readonly code: number
  readonly stdout: string
}

/** Runs acpx in the project, with our agent. */
async function drive(
  { folder, project, state }: Copy,
  config: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Driven> {
  const agent = `${process.execPath} ${dsh} ${join(folder, config)}`
  const options = {
    cwd: project,
    env: { PATH: process.env['PATH'], HOME: state, XDG_STATE_HOME: state, ...env },
  }
  try {
    const { stdout } = await run(process.execPath, [cli, '--agent', agent, ...args], options)
    return { code: 0, stdout }
  } catch (error) {
    const { code, stdout } = error as { code: number; stdout: string }
    return { code, stdout }
  }
}

/** The document that the task asks for; empty when there is none. */
async function documentOf({ project }: Copy): Promise<string> {
  return readFile(join(project, 'docs/price.md'), 'utf8').catch(() => '')
}
