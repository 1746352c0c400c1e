/** What the parts of the loop share. */
import type { Agent, AgentOptions } from '@deepseek-ai/dsh-agent'
import type { ModelRegistry, Notify, UserContent } from '@deepseek-ai/dsh-llm'
import type { SessionTable } from '@deepseek-ai/dsh-session'
import type { PromptSections } from '@deepseek-ai/dsh-system-prompt'
import type { ToolCall, ToolResult, ToolTable } from '@deepseek-ai/dsh-tools'

/** The plain registries that a turn works with, resolved once per driver. */
export interface LoopServices {
  readonly models: ModelRegistry
  readonly sessions: SessionTable
  readonly toolTable: ToolTable
  readonly runTool: (call: ToolCall) => Promise<ToolResult>
  readonly prompt: PromptSections
  readonly notify: Notify
  readonly warn: (message: string, error: unknown) => void
  /** How long a cancelled turn waits for tools that clean up, in ms. */
  readonly abortGraceMs: number
  /** How long `stop()` waits for tools that outlived their turn, in ms. */
  readonly stopGraceMs: number
}

/** What a turn needs of its agent. */
export interface Turn {
  readonly agent: Agent
  readonly services: LoopServices
  /** As they were when the turn began. */
  readonly options: AgentOptions
  readonly input: readonly UserContent[]
  readonly signal: AbortSignal
  /** Settles when the signal is aborted. */
  readonly aborted: Promise<void>
  /** Logs the input that arrived meanwhile; whether there was any. */
  drainSteering(): boolean
  /** Takes note of a call that goes on after its turn. */
  leave(call: Promise<unknown>): void
}
