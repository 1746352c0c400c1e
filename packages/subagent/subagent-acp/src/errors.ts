/** The error of the ACP backend; a child's failure only shows as a diagnostic. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type AcpChildErrorCode =
  | 'PROCESS_ENDED'
  | 'HANDSHAKE_TIMEOUT'
  | 'PROTOCOL_VERSION'
  | 'AUTH_REQUIRED'
  | 'NOT_OFFERED'
  | 'AGENT_FAILED'

/** Why an ACP child could not do its work. */
export class AcpChildError extends HarnessError<AcpChildErrorCode> {
  override readonly name: string = 'AcpChildError'
}
