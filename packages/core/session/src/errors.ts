/** The error of the session seam. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type SessionErrorCode =
  | 'NOT_JSON'
  | 'DUPLICATE_SESSION'
  | 'UNKNOWN_SESSION'
  | 'DUPLICATE_STORE'
  | 'NO_STORE'

/** A failure of the session seam. */
export class SessionError extends HarnessError<SessionErrorCode> {
  override readonly name: string = 'SessionError'
}
