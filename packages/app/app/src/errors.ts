/** The error of the command. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type AppErrorCode =
  | 'BOOT_FAILED'
  | 'INTERRUPTED'
  | 'INVALID_CONFIG'
  | 'NOT_A_PLUGIN'
  | 'NO_FRONT_END'
  | 'DUPLICATE_FRONT_END'
  | 'FRONT_END_GONE'
  | 'USAGE'

/** A command line or a configuration that cannot be served; one line of the message per problem. */
export class AppError extends HarnessError<AppErrorCode> {
  override readonly name: string = 'AppError'
}
