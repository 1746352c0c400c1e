/** The error of the ACP server, and what a client is told of a failure. */
import { type AgentContext, RequestError } from '@agentclientprotocol/sdk'
import { type Failure, HarnessError, isHarnessError } from '@deepseek-ai/dsh-llm'

export type AcpErrorCode = 'UNSUPPORTED_REQUEST' | 'UNKNOWN_TOOL'

/** A use or a configuration that the ACP server cannot honour. */
export class AcpError extends HarnessError<AcpErrorCode> {
  override readonly name: string = 'AcpError'
}

/** Source: the error codes of JSON-RPC 2.0. */
const invalidRequestCode = -32600
const invalidParamsCode = -32602
const internalErrorCode = -32603

/** Codes whose cause lies in the client's parameters. */
const clientFaults: ReadonlySet<string> = new Set(['INVALID_CWD', 'UNKNOWN_MODEL'])
/** Codes that mean that there is no such session. */
const notFound: ReadonlySet<string> = new Set(['UNKNOWN_SESSION', 'INVALID_SESSION_ID'])

export function invalidParams(message: string): RequestError {
  return new RequestError(invalidParamsCode, message)
}

export function invalidRequest(message: string): RequestError {
  return new RequestError(invalidRequestCode, message)
}

/** A failure as a client sees it: its message and its code, nothing else. */
export function failed({ code, message }: Failure): RequestError {
  return new RequestError(internalErrorCode, message, { code })
}

interface RequestContext<Params> {
  readonly params: Params
  readonly client: AgentContext
  /** Aborted by `$/cancel_request`, and when the connection closes. */
  readonly signal: AbortSignal
}

/** Makes of every failure what the client may be told; the rest goes to the log. */
export function told<Params extends object, Response>(
  report: (error: unknown) => void,
  handle: (params: Params, client: AgentContext, signal: AbortSignal) => Promise<Response>,
): (context: RequestContext<Params>) => Promise<Response> {
  return async ({ params, client, signal }) => {
    try {
      return await handle(params, client, signal)
    } catch (error) {
      const known = toRequestError(error, sessionIn(params))
      if (known === undefined) report(error)
      throw (
        known ??
        failed({ code: 'INTERNAL', message: 'the agent failed: its log on stderr says why' })
      )
    }
  }
}

function sessionIn(params: object): string | undefined {
  return 'sessionId' in params && typeof params.sessionId === 'string'
    ? params.sessionId
    : undefined
}

/** Absent for what only the log may know: it has no message of ours, and could hold anything. */
function toRequestError(error: unknown, sessionId?: string): RequestError | undefined {
  if (error instanceof RequestError) return error
  if (!isHarnessError(error)) return undefined
  const { code, message } = error
  if (sessionId !== undefined && notFound.has(code)) return RequestError.sessionNotFound(sessionId)
  if (clientFaults.has(code)) return new RequestError(invalidParamsCode, message, { code })
  return failed(error)
}
