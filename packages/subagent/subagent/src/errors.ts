/** The error of the subagent seam. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type SubagentErrorCode =
  | 'DUPLICATE_PROVIDER'
  | 'NO_PROVIDER'
  | 'UNSUPPORTED_CAPABILITY'
  | 'DEPTH_EXCEEDED'
  | 'INVALID_REQUEST'
  | 'TOO_MANY_RUNS'

/** A failure of the subagent seam. */
export class SubagentError extends HarnessError<SubagentErrorCode> {
  override readonly name: string = 'SubagentError'
}

/** A start that would go deeper than `maxDepth` allows. */
export class SubagentDepthError extends SubagentError {
  override readonly name: string = 'SubagentDepthError'

  constructor(message: string, options?: ErrorOptions) {
    super('DEPTH_EXCEEDED', message, options)
  }
}
