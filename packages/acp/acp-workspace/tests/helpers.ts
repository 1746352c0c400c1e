/** A server over streams in this process, and the SDK's own client with files and terminals. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import {
  client as clientApp,
  type ClientCapabilities,
  type CreateTerminalRequest,
  methods,
  ndJsonStream,
  type NewSessionRequest,
  type PromptRequest,
  RequestError,
  type ToolCallContent,
} from '@agentclientprotocol/sdk'
import type { Context } from '@deepseek-ai/cordis'
import { type AppStreams, boot } from '@deepseek-ai/dsh-app'
import type { Session } from '@deepseek-ai/dsh-session'
import { scriptedModel, temporaryFolder, temporaryProject } from '@deepseek-ai/dsh-testkit'
import { expect, onTestFinished } from 'vitest'
import type { Config } from '../src/index.ts'

interface Call {
  readonly name: string
  readonly input: Record<string, unknown>
  readonly callId?: string
}

export const bash = (command: string, more: object = {}): Call => ({
  name: 'bash',
  input: { command, ...more },
})

/** What a client does otherwise than usual; a promise that never settles is a client that hangs. */
export interface Faults {
  readonly [method: string]: (params: never) => unknown
}

export interface Setup {
  /** What the model calls, one call a step, for each prompt of a session. */
  readonly calls: readonly Call[] | ((cwd: string, prompt: string) => readonly Call[])
  readonly config?: Partial<Config>
  readonly capabilities?: ClientCapabilities
  readonly faults?: Faults
  readonly entries?: string
  /** What stderr may show; else it must stay empty. */
  readonly expectErrors?: RegExp
}

export const allCapabilities: ClientCapabilities = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
}

export interface Harness {
  readonly ctx: Context
  readonly folder: string
  /** Ends the connection. */
  readonly drop: () => void
  /** Texts that are not saved, by absolute path. */
  readonly buffers: Map<string, string>
  /** Every request of the agent, in order. */
  readonly requests: readonly {
    readonly method: string
    readonly params: Record<string, unknown>
  }[]
  readonly methods: () => string[]
  readonly stderr: () => string
  readonly terminals: ReadonlyMap<string, Terminal>
  /** Contents of tool calls that were shown. */
  readonly shown: readonly ToolCallContent[]
  readonly open: (cwd?: string) => Promise<string>
  readonly prompt: (sessionId: string, text?: string) => Promise<string>
  readonly cancel: (sessionId: string) => Promise<void>
  /** Texts of the tool results of a session, with codes before those that failed. */
  readonly results: (sessionId: string) => string[]
  readonly session: (sessionId: string) => Session | undefined
}

/** Boots the agent, and connects. */
export async function start(setup: Setup): Promise<Harness> {
  const { folder, ctx, stdin, stdout, stderr } = await startServer(setup)
  const buffers = new Map<string, string>()
  const requests: { method: string; params: Record<string, unknown> }[] = []
  const terminals = new Map<string, Terminal>()
  const shown: ToolCallContent[] = []
  onTestFinished(() => {
    for (const { process } of terminals.values()) process.kill('SIGKILL')
  })
  const answers: Faults = { ...editor(buffers), ...shell(terminals), ...setup.faults }
  const app = clientApp({ name: 'test' }).onNotification(
    methods.client.session.update,
    ({ params: { update } }) => {
      if (update.sessionUpdate === 'tool_call_update') shown.push(...(update.content ?? []))
    },
  )
  for (const [method, answer] of Object.entries(answers)) {
    app.onRequest(
      method,
      (params) => params as Record<string, unknown>,
      ({ params }) => {
        requests.push({ method, params })
        return answer(params as never) as never
      },
    )
  }
  const input = Readable.toWeb(stdout) as ReadableStream<Uint8Array>
  const connection = app.connect(ndJsonStream(Writable.toWeb(stdin), input))
  const { agent } = connection
  const clientCapabilities = setup.capabilities ?? allCapabilities
  await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities })
  return {
    ctx,
    folder,
    drop: () => stdin.end(),
    buffers,
    requests,
    methods: () => requests.map(({ method }) => method),
    stderr,
    terminals,
    shown,
    open: async (cwd = folder) => {
      const request: NewSessionRequest = { cwd, mcpServers: [] }
      return (await agent.request(methods.agent.session.new, request)).sessionId
    },
    prompt: async (sessionId, text = 'go') => {
      const request: PromptRequest = { sessionId, prompt: [{ type: 'text', text }] }
      return (await agent.request(methods.agent.session.prompt, request)).stopReason
    },
    cancel: (sessionId) => agent.notify(methods.agent.session.cancel, { sessionId }),
    results: (sessionId) => resultsOf(ctx.sessions.get(sessionId as never)),
    session: (sessionId) => ctx.sessions.get(sessionId as never),
  }
}

async function startServer({ calls, config = {}, entries = '', expectErrors }: Setup) {
  const yml = `- name: '@deepseek-ai/dsh-agent-core'
  config: { abortGraceMs: 20000 }
- name: '@deepseek-ai/dsh-acp'
- name: '@deepseek-ai/dsh-acp-workspace'
  config: ${JSON.stringify({ graceMs: 10_000, ...config })}
- name: '@deepseek-ai/dsh-bash-local'
- name: '@deepseek-ai/dsh-tool-bash'
- name: '@deepseek-ai/dsh-fs-local'
- name: '@deepseek-ai/dsh-tool-fs'
${entries}`
  const project = await temporaryProject({ 'cordis.yml': yml })
  const folder = await temporaryFolder()
  const stdin = new PassThrough()
  const stdout = new PassThrough()
  const stderr = new PassThrough().setEncoding('utf8')
  let errors = ''
  stderr.on('data', (chunk: string) => (errors += chunk))
  const streams = { stdin, stdout, stderr } as unknown as AppStreams
  const app = await boot(join(project, 'cordis.yml'), { streams })
  const { ctx } = app
  ctx.llm.registerAdapter(
    scriptedModel(({ sessionId, messages }, index) => {
      const cwd = ctx.sessions.get(sessionId as never)?.header.cwd ?? ''
      const prompt = JSON.stringify(messages[0]?.content)
      const call = (typeof calls === 'function' ? calls(cwd, prompt) : calls)[index]
      return call === undefined ? 'done' : { calls: [call] as never }
    }),
  )
  const code = ctx.app.slot.serve(ctx.app.request, new AbortController().signal, async () => {})
  code.catch(() => {})
  onTestFinished(async () => {
    stdin.end()
    stdout.resume()
    await code.catch(() => {})
    expect(ctx.agents.list()).toEqual([])
    await app.dispose()
    expect(errors).toMatch(expectErrors ?? /^$/)
  })
  return { ctx, folder, stdin, stdout, stderr: () => errors }
}

function editor(buffers: Map<string, string>): Faults {
  return {
    'fs/read_text_file': ({ path }: { path: string }) => {
      const content = buffers.get(path)
      if (content === undefined) throw RequestError.resourceNotFound(path)
      return { content }
    },
    'fs/write_text_file': ({ path, content }: { path: string; content: string }) => {
      buffers.set(path, content)
      return {}
    },
  }
}

/** A process of the client. */
export interface Terminal {
  readonly process: ChildProcess
  readonly exit: Promise<unknown>
  output: string
  isReleased: boolean
}

function shell(terminals: Map<string, Terminal>): Faults {
  const find = (id: string): Terminal => {
    const terminal = terminals.get(id)
    if (terminal === undefined) throw RequestError.resourceNotFound(id)
    return terminal
  }
  type Ids = { terminalId: string }
  return {
    'terminal/create': ({ command, args, cwd, env = [] }: CreateTerminalRequest) => {
      const own = { PATH: process.env['PATH'] }
      const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]))
      const child = spawn(command, args ?? [], {
        cwd: cwd ?? '/',
        env: { ...own, ...variables },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const terminal = { process: child, exit: once(child, 'close'), output: '', isReleased: false }
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk: Buffer) => (terminal.output += chunk.toString()))
      }
      const terminalId = `t${terminals.size}`
      terminals.set(terminalId, terminal)
      return { terminalId }
    },
    'terminal/output': ({ terminalId }: Ids) => ({
      output: find(terminalId).output,
      truncated: false,
    }),
    'terminal/wait_for_exit': async ({ terminalId }: Ids) => {
      const { exit, process: child } = find(terminalId)
      await exit
      return { exitCode: child.exitCode, signal: child.signalCode }
    },
    'terminal/kill': ({ terminalId }: Ids) => {
      find(terminalId).process.kill('SIGKILL')
      return {}
    },
    'terminal/release': ({ terminalId }: Ids) => {
      const terminal = find(terminalId)
      terminal.process.kill('SIGKILL')
      terminal.isReleased = true
      return {}
    },
  }
}

function resultsOf(session: Session | undefined): string[] {
  const texts: string[] = []
  for (const event of session?.events() ?? []) {
    if (event.type !== 'tool/result') continue
    const { content, code } = event.data
    const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    texts.push(code === undefined ? text : `${code}: ${text}`)
  }
  return texts
}
