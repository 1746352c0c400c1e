/** The error of the tool seam, and the codes that results carry. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type ToolErrorCode =
  | 'DUPLICATE_TOOL'
  | 'INVALID_TOOL'
  | 'UNKNOWN_TOOL'
  | 'TOOL_DENIED'
  | 'INVALID_ARGUMENTS'
  | 'INVALID_RESULT'
  | 'TOOL_FAILED'
  | 'ABORTED'
  | 'NOT_EXECUTED'

/** A failure of the tool seam. */
export class ToolError extends HarnessError<ToolErrorCode> {
  override readonly name: string = 'ToolError'
}
