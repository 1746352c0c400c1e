/** The error of the agent seam. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type AgentErrorCode =
  | 'DUPLICATE_DRIVER'
  /** The agent is gone, or on its way. */
  | 'AGENT_DISPOSED'
  | 'NO_DRIVER'
  | 'NO_MODEL'
  | 'INVALID_CWD'

/** A failure of the agent seam. */
export class AgentError extends HarnessError<AgentErrorCode> {
  override readonly name: string = 'AgentError'
}
