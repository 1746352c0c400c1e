/** Sends one request to a client, and believes nothing of the answer. */
import { RequestError } from '@agentclientprotocol/sdk'
import type { AcpClient } from '@deepseek-ai/dsh-acp'
import { messageOf } from '@deepseek-ai/dsh-llm'
import type { z } from 'zod'
import { AcpWorkspaceError } from './errors.ts'

/** A request within the session of the client. */
export interface Question<Answer> {
  readonly method: string
  /** Beside the session's id. */
  readonly params: object
  readonly answer: z.ZodType<Answer>
  /** Withdraws the request. */
  readonly signal?: AbortSignal | undefined
  /** Whether the answer still matters then; default: no, and the call rejects at once. */
  readonly awaitsAnswer?: boolean
}

/** @throws AcpWorkspaceError `CLIENT_REFUSED`, `CLIENT_GONE`, `INVALID_ANSWER`. */
export async function ask<Answer>(
  { sessionId, request }: AcpClient,
  { method, params, answer, signal, awaitsAnswer = false }: Question<Answer>,
): Promise<Answer> {
  const options = signal && { cancellationSignal: signal, stopWaitingOnCancel: !awaitsAnswer }
  let said: unknown
  try {
    said = await request(method, { sessionId, ...params }, options)
  } catch (error) {
    throw failure(method, error)
  }
  const { success, data, error } = answer.safeParse(said)
  if (success) return data
  throw new AcpWorkspaceError(
    'INVALID_ANSWER',
    `the client answered "${method}" with what the protocol does not know: ${error.issues[0]?.message}`,
  )
}

function failure(method: string, error: unknown): AcpWorkspaceError {
  const message = messageOf(error)
  return error instanceof RequestError
    ? new AcpWorkspaceError('CLIENT_REFUSED', `the client refused "${method}": ${message}`, {
        cause: error,
      })
    : new AcpWorkspaceError('CLIENT_GONE', `the client cannot be reached: ${message}`, {
        cause: error,
      })
}
