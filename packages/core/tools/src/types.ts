/** The vocabulary of the tool seam. */
import type { JsonObject, JsonValue, ToolResultContent } from '@deepseek-ai/dsh-llm'
import type { SessionId } from '@deepseek-ai/dsh-session'
import type { z } from 'zod'

/** The agent that a call is made for; the agent package merges its `Agent` into this. */
export interface ToolAgent {
  readonly id: SessionId
  /** What the agent may use; absent means every registered tool. */
  readonly toolScope?: ToolScope
}

/** Narrows and extends the registered tools for one agent. */
export interface ToolScope {
  /** Whether the agent may use the registered tool of this name; also asked of tools that come later. */
  allows(name: string): boolean
  /** Tools that only this agent has; `allows` is not asked for them. */
  readonly own?: readonly Tool[]
}

export interface ToolResult {
  readonly content: ToolResultContent
  readonly isError: boolean
  /** Why it failed, for programs. */
  readonly code?: string
  /** The turn is completed by this result: nothing called after it in the same message runs. */
  readonly endsTurn?: boolean
}

/** What a running tool knows of its call. */
export interface ToolExecution {
  readonly agent: ToolAgent
  readonly callId: string
  /** Aborted when the turn is cancelled; a tool then settles as soon as it has cleaned up. */
  readonly signal: AbortSignal
  /** Tells whoever watches how far the call is; cheap, and free to be called often. */
  readonly update: (progress: ToolProgress) => void
}

/** What a call tells of its progress while it runs; never part of the log. */
export interface ToolProgress {
  /** One line for a person. */
  readonly text?: string
  /** For programs that know the tool. */
  readonly data?: unknown
}

export interface Tool<Parameters extends z.ZodObject = z.ZodObject> {
  /** 1 to 64 of `a-z A-Z 0-9 _ -`. */
  readonly name: string
  readonly description: string
  readonly parameters: Parameters
  /** What the model is told instead of the schema of `parameters`; the tool then checks its input itself. */
  readonly inputSchema?: JsonObject
  /** Whether calls of one message may run at the same time; default false. */
  readonly parallel?: boolean
  /** A text stands for a successful result. A throw becomes an error result with its code. */
  execute(args: z.output<Parameters>, exec: ToolExecution): Promise<ToolResult | string>
}

/** A model's request to run a tool; a `tools/execute` listener may replace `input`. */
export interface ToolCall {
  readonly agent: ToolAgent
  readonly callId: string
  readonly name: string
  input: JsonValue
  readonly signal: AbortSignal
}
