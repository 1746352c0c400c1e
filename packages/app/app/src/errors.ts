/** The error of the command. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type AppErrorCode =
  | 'BOOT_FAILED'
  | 'INTERRUPTED'
  /** The yml is missing, unreadable or wrong, or an entry of it did not load. */
  | 'INVALID_CONFIG'
  /** A module that an entry names exports no plugin. */
  | 'NOT_A_PLUGIN'
  | 'NO_FRONT_END'
  | 'DUPLICATE_FRONT_END'
  | 'FRONT_END_GONE'
  /** The command line is wrong. */
  | 'USAGE'

/** A command line or a configuration that cannot be served; one line of the message per problem. */
export class AppError extends HarnessError<AppErrorCode> {
  override readonly name: string = 'AppError'
}
