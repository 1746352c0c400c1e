/** The error of the subagent seam. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type SubagentErrorCode =
  | 'DUPLICATE_PROVIDER'
  | 'NO_PROVIDER'
  | 'UNSUPPORTED_CAPABILITY'
  /** The child would be deeper than `maxDepth` allows. */
  | 'DEPTH_EXCEEDED'
  /** A value of the request that no provider could honour, or this one cannot. */
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
