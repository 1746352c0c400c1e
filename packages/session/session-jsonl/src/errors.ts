/** The error of the session files. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type SessionFileErrorCode =
  | 'SESSION_CORRUPT'
  | 'SESSION_VERSION'
  | 'SESSION_IN_USE'
  | 'SESSION_EXISTS'
  | 'INVALID_SESSION_ID'

/** A failure of a session file; the message names file and line. */
export class SessionFileError extends HarnessError<SessionFileErrorCode> {
  override readonly name: string = 'SessionFileError'
}
