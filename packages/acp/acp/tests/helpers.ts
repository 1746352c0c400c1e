/** A server over streams in this process, booted from a yml, and a client that keeps what it hears. */
import { PassThrough, Readable, Writable } from 'node:stream'
import { join } from 'node:path'
import {
  client as clientApp,
  type ClientConnection,
  type ClientContext,
  type ContentBlock,
  methods,
  ndJsonStream,
  type NewSessionRequest,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import type { Context } from '@deepseek-ai/cordis'
import { type AppRequest, type AppStreams, boot } from '@deepseek-ai/dsh-app'
import type { ModelAdapter } from '@deepseek-ai/dsh-llm'
import { temporaryProject } from '@deepseek-ai/dsh-testkit'
import { expect, onTestFinished } from 'vitest'
import type { Config } from '../src/index.ts'

export interface ServerSetup {
  readonly models?: readonly ModelAdapter[]
  readonly config?: Partial<Config>
  /** Config of agent-core. */
  readonly core?: object
  /** More entries of the yml. */
  readonly entries?: string
  readonly request?: Partial<AppRequest>
  readonly files?: Readonly<Record<string, string>>
  /** What stderr may show; else it must stay empty. */
  readonly expectErrors?: RegExp
  /** What is to be there before the server serves. */
  readonly prepare?: (ctx: Context) => void
  /** Folder of an earlier server, to go on in. */
  readonly folder?: string
}

export interface Server {
  readonly ctx: Context
  readonly folder: string
  readonly stdin: PassThrough
  readonly stdout: PassThrough
  readonly stderr: () => string
  /** The lines of stdout so far. */
  readonly lines: () => string[]
  /** Asks the server to end, as a signal does. */
  readonly abort: () => void
  /** The exit code. */
  readonly code: Promise<number>
}

/** Boots the yml and serves; after the test stdin ends, and every line of stdout must be a frame. */
export async function startServer(setup: ServerSetup = {}): Promise<Server> {
  const { models = [], config = {}, core = {}, entries = '', request, files } = setup
  const yml = `- name: '@deepseek-ai/dsh-agent-core'
  config: ${JSON.stringify(core)}
- name: '@deepseek-ai/dsh-acp'
  config: ${JSON.stringify(config)}
${entries}`
  const folder = setup.folder ?? (await temporaryProject({ ...files, 'cordis.yml': yml }))
  const stdin = new PassThrough()
  const stdout = new PassThrough()
  const stderr = new PassThrough().setEncoding('utf8')
  const text = { stdout: '', stderr: '' }
  stdout.on('data', (chunk: Buffer) => (text.stdout += chunk.toString('latin1')))
  stderr.on('data', (chunk: string) => (text.stderr += chunk))
  const streams = { stdin, stdout, stderr } as unknown as AppStreams
  const app = await boot(join(folder, 'cordis.yml'), { streams, ...(request && { request }) })
  for (const model of models) app.ctx.llm.registerAdapter(model)
  setup.prepare?.(app.ctx)
  const controller = new AbortController()
  const { slot, request: asked } = app.ctx.app
  const code = slot.serve(asked, controller.signal, async () => {})
  code.catch(() => {})
  const lines = (): string[] => text.stdout.split('\n').slice(0, -1)
  onTestFinished(async () => {
    stdin.end()
    stdout.resume()
    await code.catch(() => {})
    expect(app.ctx.agents.list()).toEqual([])
    await app.dispose()
    for (const line of lines()) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
    expect(text.stderr).toMatch(setup.expectErrors ?? /^$/)
  })
  const { ctx } = app
  const abort = (): void => controller.abort()
  return { ctx, folder, stdin, stdout, stderr: () => text.stderr, lines, abort, code }
}

/** Answers a question; the default refuses by giving no answer. */
export type Answer = (
  request: RequestPermissionRequest,
) => RequestPermissionResponse | Promise<RequestPermissionResponse>

/** The SDK's own client. */
export interface Client {
  readonly connection: ClientConnection
  readonly agent: ClientContext
  readonly notifications: readonly SessionNotification[]
  readonly questions: readonly RequestPermissionRequest[]
  /** The updates of a session, of one kind when that is given. */
  readonly updates: <Kind extends SessionUpdate['sessionUpdate']>(
    sessionId: string,
    kind: Kind,
  ) => Extract<SessionUpdate, { sessionUpdate: Kind }>[]
  /** All that the agent wrote in a session. */
  readonly textOf: (sessionId: string) => string
  /** Opens a session; gives its id. */
  readonly open: (cwd: string, meta?: Record<string, unknown>) => Promise<string>
  readonly prompt: (
    sessionId: string,
    text: string,
  ) => Promise<{ stopReason: string; usage: unknown }>
}

/** Connects a client to a server and shakes hands. */
export async function connect(
  { stdin, stdout }: Pick<Server, 'stdin' | 'stdout'>,
  answer: Answer = () => ({ outcome: { outcome: 'cancelled' } }),
): Promise<Client> {
  const notifications: SessionNotification[] = []
  const questions: RequestPermissionRequest[] = []
  const app = clientApp({ name: 'test' })
    .onNotification(methods.client.session.update, ({ params }) => void notifications.push(params))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      questions.push(params)
      return answer(params)
    })
  const input = Readable.toWeb(stdout.pipe(new PassThrough())) as ReadableStream<Uint8Array>
  const connection = app.connect(ndJsonStream(Writable.toWeb(stdin), input))
  const { agent } = connection
  const hello = { protocolVersion: 1, clientCapabilities: {} }
  await agent.request(methods.agent.initialize, hello)
  const updates: Client['updates'] = (sessionId, kind) =>
    notifications
      .filter((one) => one.sessionId === sessionId && one.update.sessionUpdate === kind)
      .map(({ update }) => update as never)
  return {
    connection,
    agent,
    notifications,
    questions,
    updates,
    textOf: (sessionId) =>
      updates(sessionId, 'agent_message_chunk')
        .map(({ content }) => (content.type === 'text' ? content.text : ''))
        .join(''),
    open: async (cwd, meta) => {
      const request: NewSessionRequest = { cwd, mcpServers: [], ...(meta && { _meta: meta }) }
      return (await agent.request(methods.agent.session.new, request)).sessionId
    },
    prompt: async (sessionId, text) => {
      const prompt: ContentBlock[] = [{ type: 'text', text }]
      const response = await agent.request(methods.agent.session.prompt, { sessionId, prompt })
      const { stopReason, _meta: meta } = response
      return { stopReason, usage: meta?.['dsh/usage'] }
    },
  }
}

/** What a request was refused with. @throws when it was not. */
export async function refusal(
  request: Promise<unknown>,
): Promise<{ code: number; message: string; data?: unknown }> {
  try {
    await request
  } catch (error) {
    const { code, message, data } = error as { code: number; message: string; data?: unknown }
    return { code, message, data }
  }
  throw new Error('the request was not refused')
}
