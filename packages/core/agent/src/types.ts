/** The vocabulary of the agent seam. */
import type { Context } from '@deepseek-ai/cordis'
import type { UserContent } from '@deepseek-ai/dsh-llm'
import type {
  Session,
  SessionId,
  SessionOrigin,
  SessionPrefix,
  TurnEnd,
} from '@deepseek-ai/dsh-session'
import type { ToolScope } from '@deepseek-ai/dsh-tools'

/** How an agent runs; packages may merge in options of their own. */
export interface AgentOptions {
  /** A registered model. */
  readonly model: string
  /** Tokens of one reply; absent: what the model allows. */
  readonly maxOutputTokens?: number
  /** Of the sampling; absent: the model's own. */
  readonly temperature?: number
  /** Steps of one turn; past it the turn ends with `max-steps`. */
  readonly maxSteps: number
}

export type AgentStatus = 'idle' | 'running' | 'disposed'

/** A model-driven worker with an inbox and one session. */
export interface Agent {
  /** The id of its session. */
  readonly id: SessionId
  readonly options: AgentOptions
  readonly session: Session
  /** The effective model; the same as `options.model`. */
  readonly model: string
  /** The workspace, from the session's header. */
  readonly cwd: string
  readonly status: AgentStatus
  readonly toolScope?: ToolScope
  /** Of the loop that drives it, which may be reloaded: read services with `ctx.get(name)`. */
  readonly ctx: Context
  /**
   * Queues input for the next turn. Inputs that wait together share one turn.
   * @returns how that turn ended; never rejects.
   * @throws AgentError `AGENT_DISPOSED`; SessionError `NOT_JSON`.
   */
  send(input: string | UserContent): Promise<TurnEnd>
  /**
   * Puts input into the running turn, before its next step; the same as `send` while idle.
   * @returns how that turn ended; never rejects.
   * @throws AgentError `AGENT_DISPOSED`; SessionError `NOT_JSON`.
   */
  steer(input: string | UserContent): Promise<TurnEnd>
  /** Ends the running turn and all input that waits, as `aborted`. What is sent afterwards runs. */
  cancel(reason?: string): void
  /** Settles when no turn runs and nothing waits; never rejects. */
  whenIdle(): Promise<void>
  /** Changes the model from the next turn on. @throws LlmError `UNKNOWN_MODEL`. */
  setModel(model: string): void
  /**
   * Ties something to the agent's life: `dispose()` calls it, after the cancel, and waits for it.
   * @returns a function that unties it again.
   * @throws AgentError `AGENT_DISPOSED` once the agent is gone.
   */
  onDispose(callback: () => Promise<void>): () => void
}

/** The owner's hold on an agent. */
export interface AgentHandle {
  readonly agent: Agent
  /**
   * Cancels, disposes what is tied to the agent, waits for the loop's exit and the last flush, and
   * forgets agent and session. Never rejects; each call gives the same promise.
   */
  readonly dispose: () => Promise<void>
}

export interface CreateAgentOptions {
  /** What is absent here comes from the agent service's config. */
  readonly options?: Partial<AgentOptions>
  /** Default: a new random id. */
  readonly id?: SessionId
  /** Absolute path of a folder. */
  readonly cwd: string
  readonly parentSession?: SessionId
  /** Default 0. */
  readonly delegationDepth?: number
  readonly origin?: SessionOrigin
  /** The events that a fork starts with. */
  readonly seed?: SessionPrefix
  readonly toolScope?: ToolScope
}

/** What a loop is given to drive. */
export interface AgentSpec {
  readonly session: Session
  readonly options: AgentOptions
  readonly toolScope: ToolScope | undefined
}

/** The part of an agent that its service needs beyond {@link Agent}. */
export interface DrivenAgent extends Agent {
  /** Called once. Stops for good: cancels, runs the `onDispose` callbacks, settles after the last turn's end. */
  stop(): Promise<void>
}

/** Makes agents run; one per context. */
export interface AgentDriver {
  create(spec: AgentSpec): DrivenAgent
}
