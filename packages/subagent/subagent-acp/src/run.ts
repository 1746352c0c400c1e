/** One run: a process of its own, one prompt, and the end of both. */
import type {
  ActiveSession,
  PromptResponse,
  RequestPermissionResponse,
} from '@agentclientprotocol/sdk'
import { messageOf, within } from '@deepseek-ai/dsh-llm'
import type {
  SubagentResult,
  SubagentRun,
  SubagentRunContext,
  SubagentStartRequest,
  SubagentStopReason,
} from '@deepseek-ai/dsh-subagent'
import type { Config } from './config.ts'
import { Conversation, type Lineage, type Task } from './conversation.ts'
import { jsonOf } from './diagnostic.ts'
import { AcpChildError } from './errors.ts'
import {
  answerPermission,
  cancelledPermission,
  isAllowed,
  type PermissionRequest,
} from './permission.ts'
import type { AgentPool } from './pool.ts'
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
  /** Agents that wait for a run; absent: none do. */
  readonly pool?: AgentPool | undefined
}

/** Gives one request to an agent of `config`. */
export function startAcpRun(start: AcpStart): SubagentRun {
  return new AcpRun(start)
}

class AcpRun implements SubagentRun {
  readonly id: SubagentRun['id']
  readonly result: Promise<SubagentResult>
  private readonly config: Config
  private readonly pool: AgentPool | undefined
  private readonly task: Task
  private readonly transcript: Transcript
  private readonly isWarm: boolean
  private conversation: Conversation
  private readonly cancelled = Promise.withResolvers<SubagentResult>()
  /** Settles when nothing is asked of the agent any more; never rejects. */
  private readonly talk: Promise<SubagentResult>
  private sessionId: string | undefined
  private isCancelled = false
  /** Permissions that the agent asked for and did not get. */
  private refusals = 0
  private disposal: Promise<void> | undefined

  constructor({ config, cwd, request, context, pool }: AcpStart) {
    this.id = context.childId
    this.config = config
    this.pool = pool
    this.task = { cwd, lineage: lineageOf(config, request, context) }
    this.transcript = new Transcript((activity) => context.report(activity))
    const warm = pool?.take(cwd)
    this.isWarm = warm !== undefined
    this.conversation = this.adopt(warm ?? new Conversation(config, cwd))
    this.talk = this.talkAbout(request.prompt)
    this.result = Promise.race([this.talk, this.cancelled.promise])
  }

  cancel(): void {
    if (this.isCancelled) return
    this.isCancelled = true
    this.cancelled.resolve(this.resultOf('aborted'))
    if (this.sessionId === undefined) return
    const { sessionId } = this
    const { connection } = this.conversation.process
    // An agent that is gone needs no cancel, and any other is stopped whatever becomes of it.
    connection.then(({ agent }) => agent.notify('session/cancel', { sessionId })).catch(() => {})
  }

  dispose(): Promise<void> {
    this.disposal ??= this.disposeOnce()
    return this.disposal
  }

  private async disposeOnce(): Promise<void> {
    this.cancel()
    // The cancel makes an agent end what its tools have started, which no signal of ours reaches.
    if (this.sessionId !== undefined) await within(cancelGraceMs, this.talk)
    await this.conversation.stop()
  }

  private adopt(conversation: Conversation): Conversation {
    conversation.process.permit = (asked) => this.permit(asked)
    return conversation
  }

  private permit(asked: PermissionRequest): RequestPermissionResponse {
    if (this.isCancelled) return cancelledPermission
    const answer = answerPermission(this.config.permission, asked)
    if (!isAllowed(asked, answer)) this.refusals += 1
    return answer
  }

  private async talkAbout(prompt: string): Promise<SubagentResult> {
    try {
      const session = await this.open()
      try {
        if (this.isCancelled) return this.resultOf('aborted')
        this.sessionId = session.sessionId
        this.pool?.refill(this.task.cwd)
        return this.resultFrom(await this.conversation.prompt(session, prompt, this.transcript))
      } finally {
        session.dispose()
      }
    } catch (error) {
      return this.resultOf('error', messageOf(error))
    }
  }

  private async open(): Promise<ActiveSession> {
    const { config, task, conversation } = this
    try {
      return await conversation.open(task)
    } catch (error) {
      // One that died as it was taken has done nothing yet: another can do it all.
      if (!this.isWarm || !(error instanceof AcpChildError) || error.code !== 'PROCESS_ENDED') {
        throw error
      }
      await conversation.stop()
      if (this.isCancelled) throw error
      this.conversation = this.adopt(new Conversation(config, task.cwd))
      return this.conversation.open(task)
    }
  }

  private resultFrom(response: PromptResponse): SubagentResult {
    const reason: unknown = response.stopReason
    this.transcript.addUsage(response)
    const remarks = [this.remarkOn(reason), this.remarkOnRefusals(), this.transcript.remark]
    const remark = remarks.filter((text) => text !== undefined).join('; ')
    return this.resultOf(stopReasons.get(reason) ?? 'error', remark || undefined)
  }

  /** Some agents end their turn then as if it were complete. */
  private remarkOnRefusals(): string | undefined {
    const { refusals } = this
    if (refusals === 0) return undefined
    const requests = refusals === 1 ? '1 request' : `${refusals} requests`
    return `${requests} for permission refused, by the policy "${this.config.permission}"`
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
        return `the agent ended its turn with the unknown stop reason ${jsonOf(reason)}`
    }
  }

  private resultOf(stopReason: SubagentStopReason, reason?: string): SubagentResult {
    const { output, usage } = this.transcript
    const diagnostic = reason === undefined ? undefined : this.conversation.process.describe(reason)
    return {
      output,
      stopReason,
      ...(usage !== undefined && { usage }),
      ...(diagnostic !== undefined && { diagnostic }),
    }
  }
}

function lineageOf(
  { providerName: provider }: Config,
  { parent, callId }: SubagentStartRequest,
  { runId, depth }: SubagentRunContext,
): Lineage {
  const call = callId === undefined ? {} : { callId }
  return { depth, origin: { runId, parentSessionId: parent.id, ...call, provider } }
}
