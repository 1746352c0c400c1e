/** The error of record and replay. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type ReplayErrorCode =
  | 'INVALID_FIXTURE'
  | 'REPLAY_MISSING'
  | 'REPLAY_EXHAUSTED'
  | 'REPLAY_UNUSED'

/** A failure of record and replay. */
export class ReplayError extends HarnessError<ReplayErrorCode> {
  override readonly name: string = 'ReplayError'
}
