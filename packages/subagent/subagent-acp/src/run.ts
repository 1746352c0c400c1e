/** One run: a fresh process, one prompt, and the end of both. */
import { messageOf } from '@deepseek-ai/dsh-llm'
import { cleanEnvironment, within } from '@deepseek-ai/dsh-process'
import type {
  SubagentResult,
  SubagentRun,
  SubagentRunContext,
  SubagentStartRequest,
  SubagentStopReason,
} from '@deepseek-ai/dsh-subagent'
import { AgentProcess } from './agent-process.ts'
import type { Config } from './config.ts'
import { openSession, runPrompt } from './conversation.ts'
import { AcpChildError } from './errors.ts'
import { Transcript, usageOf } from './transcript.ts'

/** How long the agent may take to end its turn after a cancel, before its stdin is closed, in ms. */
const cancelGraceMs = 500

/** How long a process may take to end after its connection closed, in ms. */
const endWaitMs = 500

const stopReasons: Readonly<Record<string, SubagentStopReason>> = {
  end_turn: 'completed',
  max_tokens: 'max-tokens',
  refusal: 'refusal',
  cancelled: 'aborted',
}

export interface AcpStart {
  readonly config: Config
  /** Where the agent works. */
  readonly cwd: string
  readonly request: SubagentStartRequest
  readonly context: SubagentRunContext
}

/** Starts the agent of `config` for one request. */
export function startAcpRun(start: AcpStart): SubagentRun {
  return new AcpRun(start)
}

class AcpRun implements SubagentRun {
  readonly id: SubagentRun['id']
  readonly result: Promise<SubagentResult>
  private readonly spec: AcpStart
  private readonly transcript: Transcript
  private readonly process: AgentProcess
  private readonly cancelled = Promise.withResolvers<SubagentResult>()
  private readonly conversation: Promise<SubagentResult>
  private sessionId: string | undefined
  private isCancelled = false
  private disposal: Promise<void> | undefined

  constructor(start: AcpStart) {
    const { config, cwd, context } = start
    const { command, args, permission } = config
    this.id = context.childId
    this.spec = start
    this.transcript = new Transcript((activity) => context.report(activity))
    this.process = new AgentProcess({
      command,
      args,
      cwd,
      env: cleanEnvironment(config.env),
      permission,
      stop: { eofGraceMs: config.disposeEofGraceMs, termGraceMs: config.disposeGraceMs },
    })
    this.conversation = this.converse()
    this.result = Promise.race([this.conversation, this.cancelled.promise])
  }

  cancel(): void {
    if (this.isCancelled) return
    this.isCancelled = true
    this.cancelled.resolve({ output: this.transcript.output, stopReason: 'aborted' })
    if (this.sessionId === undefined) return
    const { sessionId } = this
    // A full pipe may hold it back for ever; the process is stopped whatever becomes of it.
    this.process.connection.agent.notify('session/cancel', { sessionId }).catch(() => {})
  }

  dispose(): Promise<void> {
    this.disposal ??= this.disposeOnce()
    return this.disposal
  }

  private async disposeOnce(): Promise<void> {
    this.cancel()
    // The cancel makes an agent end what its tools have started, which no signal of ours reaches.
    if (this.sessionId !== undefined) await within(cancelGraceMs, this.conversation)
    await this.process.stop()
  }

  /** Never rejects. */
  private async converse(): Promise<SubagentResult> {
    const ended = this.process.ended()
    ended.catch(() => {})
    try {
      return await Promise.race([this.ask(), ended])
    } catch (error) {
      // A connection that closes is the echo of a process that ends, which says more.
      const cause = await this.trueCause(error, ended)
      return {
        output: this.transcript.output,
        stopReason: 'error',
        diagnostic: `${messageOf(cause)}${this.process.remarks}`,
      }
    }
  }

  private async trueCause(error: unknown, ended: Promise<never>): Promise<unknown> {
    if (!this.process.connection.signal.aborted) return error
    const end = ended.catch((reason: unknown) => reason)
    return (await within(endWaitMs, end)) ? end : error
  }

  private async ask(): Promise<SubagentResult> {
    const { agent } = this.process.connection
    const { cwd, config, request, context } = this.spec
    const { authMethod, model, mode } = config
    const { depth } = context
    const session = await this.withHandshakeLimit(
      openSession(agent, { cwd, depth, authMethod, model, mode }),
    )
    try {
      if (this.isCancelled) return { output: [], stopReason: 'aborted' }
      this.sessionId = session.sessionId
      const response = await runPrompt(session, request.prompt, this.transcript)
      return this.resultOf(response)
    } finally {
      session.dispose()
    }
  }

  private async withHandshakeLimit<T>(handshake: Promise<T>): Promise<T> {
    const { command, handshakeTimeoutMs } = this.spec.config
    handshake.catch(() => {})
    if (await within(handshakeTimeoutMs, handshake)) return handshake
    throw new AcpChildError(
      'HANDSHAKE_TIMEOUT',
      `the agent "${command}" did not answer in ${handshakeTimeoutMs} ms: it must speak the Agent Client Protocol on stdin and stdout`,
    )
  }

  private resultOf(response: Awaited<ReturnType<typeof runPrompt>>): SubagentResult {
    const { output } = this.transcript
    const usage = usageOf(response)
    const reason: unknown = response?.stopReason
    const stopReason = (typeof reason === 'string' && stopReasons[reason]) || 'error'
    const diagnostic = remarkOn(reason)
    return {
      output,
      stopReason,
      ...(usage !== undefined && { usage }),
      ...(diagnostic !== undefined && { diagnostic }),
    }
  }
}

function remarkOn(reason: unknown): string | undefined {
  switch (reason) {
    case 'end_turn':
    case 'max_tokens':
    case 'refusal':
      return undefined
    case 'cancelled':
      return 'the agent cancelled its turn by itself, which usually means that a permission was refused'
    case 'max_turn_requests':
      return 'the agent reached its limit of model requests in one turn'
    default:
      return `the agent ended with the unknown stop reason ${JSON.stringify(reason)?.slice(0, 200)}`
  }
}
