/** The error of the bash seam. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type BashErrorCode =
  | 'DUPLICATE_EXECUTOR'
  | 'EXECUTOR_DISPOSED'
  | 'INVALID_CONFIG'
  | 'INVALID_TIMEOUT'

/** A failure of the bash seam. */
export class BashError extends HarnessError<BashErrorCode> {
  override readonly name: string = 'BashError'
}
