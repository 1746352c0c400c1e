/** The error of what a client does for an agent. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type AcpWorkspaceErrorCode =
  /** The client answered with an error. */
  | 'CLIENT_REFUSED'
  /** The connection is closed. */
  | 'CLIENT_GONE'
  /** The client answered with something that the protocol does not know. */
  | 'INVALID_ANSWER'

/** A failure of the client's files or terminals. */
export class AcpWorkspaceError extends HarnessError<AcpWorkspaceErrorCode> {
  override readonly name: string = 'AcpWorkspaceError'
}
