/** The error of the ACP backend; a child's failure only shows as a diagnostic. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type AcpChildErrorCode =
  /** The process ended before its work was done; the text has its end and its last stderr. */
  | 'PROCESS_ENDED'
  | 'HANDSHAKE_TIMEOUT'
  | 'PROTOCOL_VERSION'
  | 'AUTH_REQUIRED'
  | 'NOT_OFFERED'
  /** The agent answered a request with an error, or broke the protocol. */
  | 'AGENT_FAILED'

/** An error that the agent answered with, as the SDK throws it: its class is not there before the first run. */
export function isRequestError(error: unknown): error is Error & { code: number; data?: unknown } {
  return error instanceof Error && 'code' in error && typeof error.code === 'number'
}

/** Why an ACP child could not do its work. */
export class AcpChildError extends HarnessError<AcpChildErrorCode> {
  override readonly name: string = 'AcpChildError'
}
