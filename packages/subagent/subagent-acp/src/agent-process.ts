/** The process of one ACP agent, and the connection over its stdin and stdout. */
import { Readable, Writable } from 'node:stream'
import {
  client,
  type ClientConnection,
  methods,
  ndJsonStream,
  type RequestPermissionRequest,
} from '@agentclientprotocol/sdk'
import {
  ByteTail,
  type CareProcess,
  type ProcessExit,
  startProcess,
  type StopOptions,
} from '@deepseek-ai/dsh-process'
import { AcpChildError } from './errors.ts'
import { answerPermission, type PermissionPolicy } from './permission.ts'
import { protocolLines } from './stdout.ts'

const tailBytes = 2048

export interface AgentProcessOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly permission: PermissionPolicy
  readonly stop: StopOptions
}

/** A running agent. Its owner calls `stop` on every path. */
export class AgentProcess {
  readonly connection: ClientConnection
  private readonly options: AgentProcessOptions
  private readonly child: CareProcess
  private readonly stderr = new ByteTail(tailBytes)
  private readonly noise = new ByteTail(tailBytes)
  private isStopping = false

  constructor(options: AgentProcessOptions) {
    const { command, args, cwd, env } = options
    this.options = options
    this.child = startProcess({ command, args, cwd, env, stdin: 'pipe' })
    this.child.stderr.on('data', (chunk: Buffer) => this.stderr.push(chunk))
    const { stdin = new Writable({ write: (_chunk, _encoding, done) => done() }) } = this.child
    const lines = this.child.stdout.pipe(protocolLines(this.noise))
    this.connection = client({ name: 'dsh' })
      .onRequest(methods.client.session.requestPermission, ({ params }) => this.permit(params))
      .connect(
        ndJsonStream(
          Writable.toWeb(stdin),
          // The web stream types of Node and of the SDK differ in name only.
          Readable.toWeb(lines) as ReadableStream<Uint8Array>,
        ),
      )
  }

  /** Rejects when the process has ended, with how it ended; never resolves. */
  async ended(): Promise<never> {
    const exit = await this.child.exited
    // What it wrote last may still be on its way, while another process holds the pipe.
    await Promise.race([this.child.closed, new Promise((resolve) => setTimeout(resolve, 50))])
    throw this.endError(exit)
  }

  /** What the process said beside the protocol, for a diagnostic. */
  get remarks(): string {
    return [remark('stderr', this.stderr), remark('stdout', this.noise)].join('')
  }

  /** Ends the process and its tree, and waits until they are gone. */
  async stop(): Promise<void> {
    this.isStopping = true
    const survivors = await this.child.stop(this.options.stop)
    this.connection.close()
    if (survivors.length === 0) return
    const pids = survivors.join(', ')
    throw new AcpChildError('AGENT_FAILED', `processes of the agent could not be killed: ${pids}`)
  }

  private permit(request: RequestPermissionRequest): ReturnType<typeof answerPermission> {
    return this.isStopping
      ? { outcome: { outcome: 'cancelled' } }
      : answerPermission(this.options.permission, request)
  }

  private endError(exit: ProcessExit): AcpChildError {
    const { command } = this.options
    switch (exit.kind) {
      case 'failed':
        return new AcpChildError('PROCESS_ENDED', exit.error.message, { cause: exit.error })
      case 'exited': {
        const text = `the agent "${command}" exited with code ${exit.code} before it had answered`
        return new AcpChildError('PROCESS_ENDED', text)
      }
      case 'killed': {
        const text = `the agent "${command}" was killed by ${exit.signal} before it had answered`
        return new AcpChildError('PROCESS_ENDED', text)
      }
    }
  }
}

function remark(name: string, tail: ByteTail): string {
  const text = tail.text().trim()
  if (text === '') return ''
  return `\n${name}${tail.isCut ? ' (its end)' : ''}: ${text}`
}
