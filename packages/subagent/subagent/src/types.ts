/** The vocabulary of the subagent seam. */
import type { Agent, AgentOptions } from '@deepseek-ai/dsh-agent'
import type { AssistantContent, JsonObject, JsonValue, Usage } from '@deepseek-ai/dsh-llm'
import type { SessionId } from '@deepseek-ai/dsh-session'

/** Identifies a run; unique in its process. */
export type SubagentRunId = string & { readonly __brand: 'SubagentRunId' }

/** Start-time features of a provider, checked before a run exists. */
export interface SubagentCapabilities {
  readonly outputSchema: boolean
  readonly depthLimit: boolean
  readonly toolFilter: boolean
}

/** Narrows a child's tools, within what its parent may use. At least one list must be given. */
export interface SubagentToolFilter {
  /** Only these; each must exist. */
  readonly allow?: readonly string[]
  /** None of these. */
  readonly deny?: readonly string[]
}

export interface SubagentStartRequest {
  readonly prompt: string
  readonly parent: Agent
  /** The parent's tool call that asks for the child. */
  readonly callId?: string
  /** A few words for people. */
  readonly label?: string
  /** Cancels the run; an aborted one starts nothing. */
  readonly signal?: AbortSignal
  /** What the child runs with; absent parts come from the parent. */
  readonly agentOptions?: Partial<AgentOptions>
  /** A JSON Schema whose root is an object; the result then carries `structured`. */
  readonly outputSchema?: JsonObject
  /** Deepest allowed depth, a non-negative safe integer; 0 allows no child at all. */
  readonly maxDepth?: number
  readonly toolFilter?: SubagentToolFilter
  /** The whole run, in ms; kept by the service. */
  readonly timeoutMs?: number
  /** Between two signs of life, in ms; kept by the service. */
  readonly idleTimeoutMs?: number
}

/** Open to declaration merging; a reason that a consumer does not know counts as failure. */
export interface SubagentStopReasonMap {
  completed: true
  aborted: true
  error: true
  'max-tokens': true
  refusal: true
}

/** Why a run ended; only `completed` is success. */
export type SubagentStopReason = keyof SubagentStopReasonMap

export interface SubagentResult {
  /** The child's last non-empty message, else what it streamed, else empty. */
  readonly output: AssistantContent
  /** The value that `outputSchema` asked for. */
  readonly structured?: JsonValue
  readonly stopReason: SubagentStopReason
  /** The child's own tokens as a provider gives it; the service adds those of all descendants. */
  readonly usage?: Usage
  /** What went wrong, for a person: never model text, never a secret, at most 4 KiB. */
  readonly diagnostic?: string
}

/** A sign of life of a running child; an empty text is nothing but that, and is not passed on. */
export type SubagentActivity =
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  | {
      readonly kind: 'tool-start'
      readonly callId: string
      readonly name: string
      readonly title?: string
    }
  | {
      readonly kind: 'tool-end'
      readonly callId: string
      readonly name: string
      readonly isError: boolean
    }
  /** The run's tokens so far, not an increment. */
  | { readonly kind: 'usage'; readonly usage: Usage }
  | { readonly kind: 'plan'; readonly text: string }

/** An activity of the run `runId`; text is gathered, so one update may stand for many deltas. */
export type SubagentUpdate = SubagentActivity & { readonly runId: SubagentRunId }

/** What a provider gets besides the request. */
export interface SubagentRunContext {
  readonly runId: SubagentRunId
  /** The child's id, minted by the service; in process it becomes the id of agent and session. */
  readonly childId: SessionId
  /** The child's absolute depth. */
  readonly depth: number
  /** Tells the service of life in the child; cheap, and free to be called for every delta. */
  report(activity: SubagentActivity): void
}

/** The handle on one delegation, owned and disposed by whoever started it. */
export interface SubagentRun {
  /** The child's id, the one that the service minted. */
  readonly id: SessionId
  /** Resolves once, with whatever became of the child; rejects only for a fault that no stop reason can express. */
  readonly result: Promise<SubagentResult>
  /** Asks the run to end; `result` becomes `aborted` at once. Idempotent, never throws. */
  cancel(reason?: string): void
  /** Cancels, and settles when the child is really gone. Each call gives the same promise. */
  dispose(): Promise<void>
  /** Present when the child takes input while it runs. */
  sendMessage?(text: string): Promise<void>
  /** Present when the child takes a further prompt after its result. */
  resume?(prompt: string): Promise<SubagentResult>
}

/** One way of running child agents. */
export interface SubagentProvider {
  readonly name: string
  readonly capabilities: SubagentCapabilities
  /** Whether the child sees the parent's finished turns. */
  readonly inheritsParentContext: boolean
  /**
   * Starts a child, synchronously: what takes time happens behind `result`.
   * @throws SubagentError `DEPTH_EXCEEDED`, `INVALID_REQUEST`; nothing is left behind then.
   */
  start(request: SubagentStartRequest, run: SubagentRunContext): SubagentRun
}

/** What all lifecycle events of one run carry. */
export interface SubagentRunInfo {
  readonly runId: SubagentRunId
  readonly provider: string
  /** The child's id. */
  readonly id: SessionId
  readonly parent: Agent
  readonly label?: string
}

export interface SubagentRunEnd extends SubagentRunInfo {
  readonly stopReason: SubagentStopReason
  readonly usage?: Usage
  /** The output, frozen; absent when there is none. */
  readonly lastAssistantMessage?: AssistantContent
}

/** A live run, as `ctx.subagents.runs()` lists it. */
export interface SubagentRunState {
  readonly runId: SubagentRunId
  readonly provider: string
  readonly id: SessionId
  readonly parentId: SessionId
  readonly depth: number
  readonly label?: string
  /** Epoch ms. */
  readonly startedAt: number
  /** Tokens of the child and its descendants so far. */
  readonly usage: Usage
}
