/** The error of the tool seam, and the codes that results carry. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type ToolErrorCode =
  | 'DUPLICATE_TOOL'
  | 'INVALID_TOOL'
  /** There is no such tool; the text names the known ones. */
  | 'UNKNOWN_TOOL'
  /** Registered, but not for this agent. */
  | 'TOOL_DENIED'
  /** The input does not fit the parameters; the tool did not run. */
  | 'INVALID_ARGUMENTS'
  /** The tool gave neither a text nor a result, or one that no log can hold. */
  | 'INVALID_RESULT'
  /** The tool threw an error without a code of its own. */
  | 'TOOL_FAILED'
  /** The turn was cancelled before or while the tool ran. */
  | 'ABORTED'
  /** The loop did not run it; the text says why. */
  | 'NOT_EXECUTED'

/** A failure of the tool seam. */
export class ToolError extends HarnessError<ToolErrorCode> {
  override readonly name: string = 'ToolError'
}
