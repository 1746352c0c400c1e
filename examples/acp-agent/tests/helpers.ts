/** Runs the real command on a copy of the example, and talks to it. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  client as clientApp,
  type ClientContext,
  type ContentBlock,
  methods,
  ndJsonStream,
  RequestError,
  type RequestPermissionRequest,
  type SessionNotification,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { afterAll, expect, onTestFinished, vi } from 'vitest'

const example = fileURLToPath(new URL('..', import.meta.url))
const project = fileURLToPath(new URL('../../coding-agent/broken-project', import.meta.url))

/** The command that an editor would start. */
export const dsh = fileURLToPath(new URL('bin.ts', import.meta.resolve('@deepseek-ai/dsh')))

// Processes take their time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Variables that choose models, all empty. */
const noKeys = {
  DEEPSEEK_API_KEY: '',
  OPENAI_API_KEY: '',
  OPENAI_BASE_URL: '',
  OPENAI_MODEL: '',
  ANTHROPIC_API_KEY: '',
}

/** A temporary copy, so that neither a `.env` nor sessions beside it reach a test. */
export interface Copy {
  /** Holds the ymls. */
  readonly folder: string
  /** A project to work in. */
  readonly project: string
  /** Where sessions are stored. */
  readonly state: string
}

export async function copyOfExample(): Promise<Copy> {
  const root = await temporaryFolder()
  const folder = join(root, 'acp-agent')
  await cp(example, folder, {
    recursive: true,
    filter: (path) => !['node_modules', 'tests', '.env'].includes(basename(path)),
  })
  await symlink(join(example, 'node_modules'), join(folder, 'node_modules'))
  await cp(project, join(root, 'project'), { recursive: true })
  await mkdir(join(root, 'state'))
  return { folder, project: join(root, 'project'), state: join(root, 'state') }
}

/** A command that runs; it is killed after the test if it still does. */
export interface Started {
  readonly child: ChildProcess
  readonly stdin: Writable
  readonly stdout: Readable
  /** The lines of stdout so far. */
  readonly lines: () => string[]
  readonly stderr: () => string
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string | null>
}

export function start(
  { folder, state }: Copy,
  config: string,
  env: Readonly<Record<string, string>> = {},
): Started {
  const { DSH_DEBUG: _, FORCE_COLOR: __, DSH_DEMO_SESSIONS: ___, ...ambient } = process.env
  const child = spawn(process.execPath, [dsh, join(folder, config)], {
    cwd: folder,
    env: { ...ambient, ...noKeys, XDG_STATE_HOME: state, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  const { stdin, stdout } = child
  // Frames may be split anywhere, characters too: latin1 keeps each byte.
  stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString('latin1')))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  // A command that has gone does not read what is said to it.
  stdin.on('error', () => {})
  const ended = once(child, 'close').then(([code, signal]) => (signal ?? code) as number | string)
  const lines = (): string[] => output.stdout.split('\n').filter((line) => line !== '')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
    for (const line of lines()) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
  })
  return { child, stdin, stdout, lines, stderr: () => output.stderr, ended }
}

export interface Client {
  readonly agent: ClientContext
  readonly questions: readonly RequestPermissionRequest[]
  readonly updates: <Kind extends SessionUpdate['sessionUpdate']>(
    sessionId: string,
    kind: Kind,
  ) => Extract<SessionUpdate, { sessionUpdate: Kind }>[]
  readonly textOf: (sessionId: string) => string
  /** Opens a session; gives its id. */
  readonly open: (cwd: string) => Promise<string>
  /** Gives why the turn ended. */
  readonly prompt: (sessionId: string, text: string) => Promise<string>
}

/**
 * Shakes hands as an editor does; it answers every question with `optionId`.
 * @param buffers texts by absolute path, which the editor offers to read and to write.
 */
export async function connect(
  { stdin, stdout }: Started,
  optionId: string,
  buffers?: Map<string, string>,
): Promise<Client> {
  const notifications: SessionNotification[] = []
  const questions: RequestPermissionRequest[] = []
  const app = clientApp({ name: 'test' })
    .onNotification(methods.client.session.update, ({ params }) => void notifications.push(params))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      questions.push(params)
      return { outcome: { outcome: 'selected', optionId } }
    })
    .onRequest(methods.client.fs.readTextFile, ({ params: { path } }) => {
      const content = buffers?.get(path)
      if (content === undefined) throw RequestError.resourceNotFound(path)
      return { content }
    })
    .onRequest(methods.client.fs.writeTextFile, ({ params: { path, content } }) => {
      buffers?.set(path, content)
      return {}
    })
  const input = Readable.toWeb(stdout.pipe(new PassThrough())) as ReadableStream<Uint8Array>
  const { agent } = app.connect(ndJsonStream(Writable.toWeb(stdin), input))
  const updates: Client['updates'] = (sessionId, kind) =>
    notifications
      .filter((one) => one.sessionId === sessionId && one.update.sessionUpdate === kind)
      .map(({ update }) => update as never)
  const fs = buffers && { readTextFile: true, writeTextFile: true }
  const hello = { protocolVersion: 1, clientCapabilities: { fs } }
  await agent.request(methods.agent.initialize, hello)
  const textOf = (sessionId: string): string =>
    updates(sessionId, 'agent_message_chunk')
      .map(({ content }) => (content.type === 'text' ? content.text : ''))
      .join('')
  const { session } = methods.agent
  return {
    agent,
    questions,
    updates,
    textOf,
    open: async (cwd) => {
      const { sessionId } = await agent.request(session.new, { cwd, mcpServers: [] })
      return sessionId
    },
    prompt: async (sessionId, text) => {
      const prompt: ContentBlock[] = [{ type: 'text', text }]
      const { stopReason } = await agent.request(session.prompt, { sessionId, prompt })
      return stopReason
    },
  }
}

/** Whether a process runs; one that has ended and waits for its parent to notice does not. */
export function isAlive(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  const state = stdout.trim()
  return state !== '' && !state.startsWith('Z')
}

/** Installs a package from npm into a temporary folder, without its scripts; removed after the tests. */
export async function temporaryInstall(spec: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'dsh-install-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', spec]
  await promisify(execFile)('npm', args, { cwd: folder })
  return folder
}
