/** What both ways of serving share: the agent, and how its turns end. */
import { randomUUID } from 'node:crypto'
import type { Context } from '@deepseek-ai/cordis'
import type { AgentHandle } from '@deepseek-ai/dsh-agent'
import type { AppRequest, AppStreams, FrontEndControl } from '@deepseek-ai/dsh-app'
import type { SessionId, TurnEnd } from '@deepseek-ai/dsh-session'
import type { Config } from './config.ts'

/** One call of the front end's `serve`. */
export interface Serving {
  readonly ctx: Context
  readonly config: Config
  readonly streams: AppStreams
  readonly request: AppRequest
  readonly control: FrontEndControl
}

/** The session that will be served: the one to resume, or a new one. */
export function sessionIdOf({ resume }: AppRequest): SessionId {
  return resume ?? (randomUUID() as string as SessionId)
}

/** The agent that the request asks for, new or resumed; the caller disposes it. */
export async function openAgent({ ctx, request }: Serving, id: SessionId): Promise<AgentHandle> {
  const { cwd, model, resume } = request
  const options = model === undefined ? {} : { model }
  return resume === undefined
    ? ctx.agents.create({ id, cwd, options })
    : ctx.agents.resume(id, options)
}

/** What people are told of a turn that did not complete. */
export function failureLine({ reason, error }: TurnEnd): string {
  if (reason === 'aborted') return 'cancelled'
  return error === undefined
    ? `the turn ended early: ${reason}`
    : `the turn failed: ${error.message} (${error.code})`
}
