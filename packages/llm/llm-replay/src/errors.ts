/** The error of record and replay. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type ReplayErrorCode =
  | 'INVALID_FIXTURE'
  /** The fixture has no session for the one that asks. */
  | 'REPLAY_MISSING'
  /** A session asks for more replies than were recorded. */
  | 'REPLAY_EXHAUSTED'
  /** Recorded replies were never asked for. */
  | 'REPLAY_UNUSED'

/** A failure of record and replay. */
export class ReplayError extends HarnessError<ReplayErrorCode> {
  override readonly name: string = 'ReplayError'
}
