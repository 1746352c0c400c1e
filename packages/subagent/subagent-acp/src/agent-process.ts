/** The process of one ACP agent, and the connection over its stdin and stdout. */
import type { ClientConnection, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import { messageOf, within } from '@deepseek-ai/dsh-llm'
import {
  type CareProcess,
  cleanEnvironment,
  type ProcessExit,
  startProcess,
  type StopOptions,
} from '@deepseek-ai/dsh-process'
import { Diagnostic, jsonOf } from './diagnostic.ts'
import { AcpChildError, isRequestError } from './errors.ts'
import { cancelledPermission, permissionRequest, type PermissionRequest } from './permission.ts'
import { messageStream } from './wire.ts'

/** How long a process may take to end after its connection closed, in ms. */
const endWaitMs = 500

export interface AgentProcessOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  /** Added to the ambient environment without its secrets. */
  readonly env: Readonly<Record<string, string>>
}

/** A running agent. Its owner calls `stop` on every path. */
export class AgentProcess {
  /** Closes, and fails what is asked, soon after the process has ended. */
  readonly connection: Promise<ClientConnection>
  /** Settles when it can do no more work; never rejects. */
  readonly ended: Promise<unknown>
  /** Answers its requests for permission; whoever has the agent sets this. */
  permit: (request: PermissionRequest) => RequestPermissionResponse = () => cancelledPermission
  private readonly command: string
  private readonly child: CareProcess
  private readonly diagnostic: Diagnostic

  constructor({ command, args, cwd, env }: AgentProcessOptions) {
    this.command = command
    this.diagnostic = new Diagnostic(env)
    const { stderr } = this.diagnostic
    this.child = startProcess({ command, args, cwd, env: cleanEnvironment(env), stdin: 'pipe' })
    this.child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
    this.connection = this.connect()
    const closed = this.connection.then((connection) => connection.closed)
    // Where there is no connection, whatever is asked fails for the reason.
    this.ended = Promise.race([this.child.exited, closed.catch(() => {})])
  }

  /** The SDK is a large part of a start: it is loaded while the first agent starts, and not before. */
  private async connect(): Promise<ClientConnection> {
    const { client } = await import('@agentclientprotocol/sdk')
    return client({ name: 'dsh' })
      .onRequest('session/request_permission', permissionRequest, ({ params }) =>
        this.permit(params),
      )
      .connect(messageStream(this.child, this.diagnostic.noise))
  }

  /** Says why a request has failed: the end of the process says more than its echo in the protocol. */
  async explain(method: string, error: unknown): Promise<AcpChildError> {
    if (error instanceof AcpChildError) return error
    const connection = await this.connection.catch(() => undefined)
    if (connection?.signal.aborted !== true) {
      const text = `the agent failed at ${method}: ${messageOf(error)}${detailsOf(error)}`
      return new AcpChildError('AGENT_FAILED', `${text}${hintFor(method)}`, { cause: error })
    }
    const { exited } = this.child
    const end = (await within(endWaitMs, exited)) ? await exited : undefined
    if (end?.kind === 'failed') {
      return new AcpChildError('PROCESS_ENDED', end.error.message, { cause: end.error })
    }
    const text = `the agent "${this.command}" ${factOf(end)} at ${method}`
    return new AcpChildError('PROCESS_ENDED', `${text}${hintFor(method)}`)
  }

  /** For people: the reason, and what the process said beside the protocol. */
  describe(reason: string): string {
    return this.diagnostic.about(reason)
  }

  /** Ends the process and its tree, and waits until they are gone. @throws AcpChildError `AGENT_FAILED` when some are not. */
  async stop(options: StopOptions): Promise<void> {
    const survivors = await this.child.stop(options)
    await this.connection.then(
      (connection) => connection.close(),
      () => {},
    )
    if (survivors.length === 0) return
    const pids = survivors.join(', ')
    throw new AcpChildError('AGENT_FAILED', `processes of the agent could not be killed: ${pids}`)
  }
}

function factOf(end: Exclude<ProcessExit, { kind: 'failed' }> | undefined): string {
  switch (end?.kind) {
    case 'exited':
      return `exited with code ${end.code}`
    case 'killed':
      return `was killed by ${end.signal}`
    case undefined:
      return 'closed its output'
  }
}

function hintFor(method: string): string {
  return method === 'initialize'
    ? ': a command that speaks the Agent Client Protocol on stdin and stdout is expected'
    : ''
}

/** Agents put what matters into the data of an internal error. */
function detailsOf(error: unknown): string {
  if (!isRequestError(error) || error.data === undefined) return ''
  return ` (${typeof error.data === 'string' ? error.data : jsonOf(error.data)})`
}
