/** The vocabulary of the system prompt. */
import type { SessionId } from '@deepseek-ai/dsh-session'

/** What a section may know of the agent; the agent package merges its `Agent` into this. */
export interface PromptAgent {
  readonly id: SessionId
  /** Fills `{{model}}`. */
  readonly model: string
  /** Fills `{{cwd}}`. */
  readonly cwd: string
}

/** One part of the system prompt. */
export interface PromptSection {
  /** Unique; also the order among sections of one `order`. */
  readonly name: string
  /** Ascending; default 0, the persona is at -100. */
  readonly order?: number
  /** `{{model}}` and `{{cwd}}` are filled in; a function's text is taken as it is. An empty text is left out. */
  readonly text: string | ((agent: PromptAgent) => string)
}
