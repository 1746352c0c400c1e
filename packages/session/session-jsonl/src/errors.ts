/** The error of the session files. */
import { HarnessError, messageOf } from '@deepseek-ai/dsh-llm'

export type SessionFileErrorCode =
  | 'SESSION_CORRUPT'
  | 'SESSION_VERSION'
  | 'SESSION_IN_USE'
  | 'SESSION_EXISTS'
  | 'SESSION_CHANGED'
  | 'SESSION_WRITE_FAILED'
  | 'INVALID_SESSION_ID'

/** A failure of a session file; the message names the file, and the line where there is one. */
export class SessionFileError extends HarnessError<SessionFileErrorCode> {
  override readonly name: string = 'SessionFileError'
}

/** A line that no reader can make sense of. */
export function corrupt(
  file: string,
  line: number,
  why: string,
  cause?: unknown,
): SessionFileError {
  return new SessionFileError(
    'SESSION_CORRUPT',
    `${file}:${line}: the session cannot be read: ${why}; nothing was changed`,
    { cause },
  )
}

/** What the file system threw. */
export function writeFailed(file: string, cause: unknown): SessionFileError {
  return new SessionFileError(
    'SESSION_WRITE_FAILED',
    `cannot write "${file}": ${messageOf(cause)}`,
    { cause },
  )
}
