/** One run: a fresh process, one prompt, and the end of both. */
import type { PromptResponse } from '@agentclientprotocol/sdk'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { within } from '@deepseek-ai/dsh-process'
import type {
  SubagentResult,
  SubagentRun,
  SubagentRunContext,
  SubagentStartRequest,
  SubagentStopReason,
} from '@deepseek-ai/dsh-subagent'
import { AgentProcess } from './agent-process.ts'
import type { Config } from './config.ts'
import { Conversation, type Lineage } from './conversation.ts'
import { AcpChildError } from './errors.ts'
import { answerPermission, cancelledPermission } from './permission.ts'
import { Transcript } from './transcript.ts'

/** How long the agent may take to end its turn after a cancel, before its stdin is closed, in ms. */
const cancelGraceMs = 500

const stopReasons: ReadonlyMap<unknown, SubagentStopReason> = new Map([
  ['end_turn', 'completed'],
  ['max_tokens', 'max-tokens'],
  ['refusal', 'refusal'],
  ['cancelled', 'aborted'],
])

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
  private readonly config: Config
  private readonly transcript: Transcript
  private readonly process: AgentProcess
  private readonly conversation: Conversation
  private readonly cancelled = Promise.withResolvers<SubagentResult>()
  /** Settles when nothing is asked of the agent any more; never rejects. */
  private readonly talk: Promise<SubagentResult>
  private sessionId: string | undefined
  private isCancelled = false
  private disposal: Promise<void> | undefined

  constructor({ config, cwd, request, context }: AcpStart) {
    const { command, args, env, permission, authMethod, model, mode } = config
    this.id = context.childId
    this.config = config
    this.transcript = new Transcript((activity) => context.report(activity))
    this.process = new AgentProcess({
      command,
      args,
      cwd,
      env,
      permit: (asked) =>
        this.isCancelled ? cancelledPermission : answerPermission(permission, asked),
    })
    const lineage = lineageOf({ config, request, context })
    this.conversation = new Conversation(this.process, { cwd, lineage, authMethod, model, mode })
    this.talk = this.talkAbout(request.prompt)
    this.result = Promise.race([this.talk, this.cancelled.promise])
  }

  cancel(): void {
    if (this.isCancelled) return
    this.isCancelled = true
    this.cancelled.resolve(this.resultOf('aborted'))
    if (this.sessionId === undefined) return
    const { sessionId } = this
    // An agent that is gone needs no cancel, and any other is stopped whatever becomes of it.
    this.process.connection.agent.notify('session/cancel', { sessionId }).catch(() => {})
  }

  dispose(): Promise<void> {
    this.disposal ??= this.disposeOnce()
    return this.disposal
  }

  private async disposeOnce(): Promise<void> {
    const { disposeEofGraceMs: eofGraceMs, disposeGraceMs: termGraceMs } = this.config
    this.cancel()
    // The cancel makes an agent end what its tools have started, which no signal of ours reaches.
    if (this.sessionId !== undefined) await within(cancelGraceMs, this.talk)
    await this.process.stop({ eofGraceMs, termGraceMs })
  }

  private async talkAbout(prompt: string): Promise<SubagentResult> {
    try {
      const session = await this.withHandshakeLimit(this.conversation.open())
      try {
        if (this.isCancelled) return this.resultOf('aborted')
        this.sessionId = session.sessionId
        return this.resultFrom(await this.conversation.prompt(session, prompt, this.transcript))
      } finally {
        session.dispose()
      }
    } catch (error) {
      return this.resultOf('error', messageOf(error))
    }
  }

  private async withHandshakeLimit<T>(handshake: Promise<T>): Promise<T> {
    const { command, handshakeTimeoutMs } = this.config
    if (await within(handshakeTimeoutMs, handshake)) return handshake
    throw new AcpChildError(
      'HANDSHAKE_TIMEOUT',
      `the agent "${command}" gave no answer to ${this.conversation.method} within ${handshakeTimeoutMs} ms: a command that speaks the Agent Client Protocol on stdin and stdout is expected`,
    )
  }

  private resultFrom(response: PromptResponse): SubagentResult {
    const reason: unknown = response.stopReason
    this.transcript.addUsage(response)
    return this.resultOf(stopReasons.get(reason) ?? 'error', this.remarkOn(reason))
  }

  private remarkOn(reason: unknown): string | undefined {
    switch (reason) {
      case 'end_turn':
        return this.transcript.output.length > 0
          ? undefined
          : 'the agent ended its turn without a text'
      case 'max_tokens':
      case 'refusal':
        return undefined
      case 'cancelled':
        return 'the agent cancelled its turn by itself, which usually means that a permission was refused'
      case 'max_turn_requests':
        return 'the agent reached its limit of model requests in one turn'
      default:
        return `the agent ended its turn with the unknown stop reason ${JSON.stringify(reason)}`
    }
  }

  private resultOf(stopReason: SubagentStopReason, reason?: string): SubagentResult {
    const { output, usage } = this.transcript
    const diagnostic = reason === undefined ? undefined : this.process.describe(reason)
    return {
      output,
      stopReason,
      ...(usage !== undefined && { usage }),
      ...(diagnostic !== undefined && { diagnostic }),
    }
  }
}

function lineageOf({ config, request, context }: Omit<AcpStart, 'cwd'>): Lineage {
  const { runId, depth } = context
  const { parent, callId } = request
  const origin = {
    runId,
    parentSessionId: parent.id,
    ...(callId !== undefined && { callId }),
    provider: config.providerName,
  }
  return { depth, origin }
}
