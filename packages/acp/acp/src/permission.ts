/** Asks the client whether a call may run, one question at a time, and remembers what holds for good. */
import type {
  PermissionOption,
  RequestPermissionResponse,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { abortedResult, errorResult, type ToolCall, type ToolResult } from '@deepseek-ai/dsh-tools'

/** Puts a question to the client; rejects when the signal is aborted, or the client cannot answer. */
export type Ask = (
  toolCall: ToolCallUpdate,
  options: PermissionOption[],
  signal: AbortSignal,
) => Promise<RequestPermissionResponse>

/** The permissions of one session, its children's among them. */
export class Permissions {
  private readonly ask: Ask
  private readonly remembered = new Map<string, boolean>()
  private last: Promise<unknown> = Promise.resolve()

  constructor(ask: Ask) {
    this.ask = ask
  }

  /** @returns the result of a call that must not run; absent when it may. Never rejects. */
  check(call: ToolCall, toolCall: ToolCallUpdate): Promise<ToolResult | undefined> {
    const answer = this.last.then(() => this.decide(call, toolCall))
    this.last = answer
    return answer
  }

  private async decide(
    { name, signal }: ToolCall,
    toolCall: ToolCallUpdate,
  ): Promise<ToolResult | undefined> {
    if (signal.aborted) return abortedResult(name)
    const known = this.remembered.get(name)
    if (known !== undefined) return known ? undefined : refusedForGood(name)
    try {
      const { outcome } = await this.ask(toolCall, optionsFor(name), signal)
      switch (outcome.outcome === 'selected' ? outcome.optionId : undefined) {
        case 'allow_once':
          return undefined
        case 'allow_always':
          this.remembered.set(name, true)
          return undefined
        case 'reject_always':
          this.remembered.set(name, false)
          return refusedForGood(name)
        // No answer, or one that was not offered, allows nothing.
        default:
          return refused(`the user does not allow this call of "${name}"`)
      }
    } catch (error) {
      if (signal.aborted) return abortedResult(name)
      return refused(`the user could not be asked for "${name}": ${messageOf(error)}`)
    }
  }
}

function optionsFor(tool: string): PermissionOption[] {
  return [
    { optionId: 'allow_once', kind: 'allow_once', name: 'Allow' },
    { optionId: 'allow_always', kind: 'allow_always', name: `Always allow ${tool}` },
    { optionId: 'reject_once', kind: 'reject_once', name: 'Reject' },
    { optionId: 'reject_always', kind: 'reject_always', name: `Always reject ${tool}` },
  ]
}

function refusedForGood(tool: string): ToolResult {
  return refused(`the user allows no call of "${tool}" in this session`)
}

function refused(why: string): ToolResult {
  return errorResult(
    'PERMISSION_DENIED',
    `${why}: do the work without it, or tell the user what you need`,
  )
}
