/** The error of the system prompt. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type SystemPromptErrorCode =
  | 'DUPLICATE_SECTION'
  | 'UNKNOWN_VARIABLE'
  /** The function of a section threw. */
  | 'SECTION_FAILED'

/** A failure of the system prompt. */
export class SystemPromptError extends HarnessError<SystemPromptErrorCode> {
  override readonly name: string = 'SystemPromptError'
}
