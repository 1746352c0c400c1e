/** The vocabulary of the session log: header and events. */
import type {
  AssistantContent,
  Failure,
  FinishReason,
  JsonValue,
  ToolResultContent,
  Usage,
  UserContent,
} from '@deepseek-ai/dsh-llm'

/** Identifies a session and, because each agent has exactly one, its agent. */
export type SessionId = string & { readonly __brand: 'SessionId' }

/** How a child's session came to be. */
export interface SessionOrigin {
  /** Name of the subagent provider. */
  readonly provider: string
  /** The tool call of the parent that asked for the child. */
  readonly callId?: string
  readonly label?: string
  /**
   * What narrows the child's tools: its own filter and those of the children above it. A tool must
   * pass each; `allow` names all that pass, `deny` those that do not.
   */
  readonly toolFilters?: readonly ToolFilter[]
}

/** Narrows the registered tools by their names. */
export interface ToolFilter {
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
}

/** What is fixed when a session is created. */
export interface SessionHeader {
  readonly id: SessionId
  /** Epoch ms. */
  readonly createdAt: number
  /** Absolute path; the workspace of the agent, whatever its shells do. */
  readonly cwd: string
  readonly parentSession?: SessionId
  /** How many events at the start of the log were inherited from the parent. */
  readonly seedLength?: number
  /** 0 at the top; a child's is its parent's plus one. */
  readonly delegationDepth: number
  readonly origin?: SessionOrigin
}

export type TurnEndReason =
  | 'completed'
  | 'aborted'
  | 'error'
  | 'max-tokens'
  | 'max-steps'
  | 'refusal'
  | 'interrupted'

/** How a turn ended; only `completed` is success, and `interrupted` is written on resume. */
export interface TurnEnd {
  readonly reason: TurnEndReason
  readonly error?: Failure
}

/** Data of every session event, by type. */
export interface SessionEventData {
  'turn/start': { readonly turn: number; readonly model: string }
  'user/message': { readonly content: UserContent }
  /** Input from the harness, not from a person; the model sees it as a user message. */
  'context/message': { readonly content: UserContent; readonly source: string }
  /** Counts from 1 within its turn. */
  'step/start': { readonly step: number }
  'assistant/message': {
    readonly content: AssistantContent
    readonly model: string
    readonly usage: Usage
    readonly finish: FinishReason
  }
  'tool/call': { readonly callId: string; readonly name: string; readonly input: JsonValue }
  'tool/result': {
    readonly callId: string
    readonly name: string
    readonly content: ToolResultContent
    readonly isError: boolean
    readonly code?: string
  }
  'step/end': { readonly step: number }
  'turn/end': TurnEnd
}

export type SessionEventType = keyof SessionEventData

/** One past fact. `seq` is its index in the log, `time` epoch ms; deep-frozen. */
export type SessionEvent<T extends SessionEventType = SessionEventType> = {
  [K in T]: {
    readonly seq: number
    readonly time: number
    readonly type: K
    readonly data: SessionEventData[K]
  }
}[T]
