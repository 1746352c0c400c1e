/** Checks what a client says of a session that it opens. */
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import type { NewSessionRequest, SessionConfigOption } from '@agentclientprotocol/sdk'
import { messageOf, type ModelInfo } from '@deepseek-ai/dsh-llm'
import type { SessionHeader, SessionId } from '@deepseek-ai/dsh-session'
import { z } from 'zod'
import { invalidParams } from './errors.ts'

/** The folder of a session, as a normal path. @throws RequestError -32602 unless it can be entered. */
export async function workspaceOf(cwd: string): Promise<string> {
  if (!isAbsolute(cwd)) throw invalidParams(`cwd "${cwd}" is not an absolute path`)
  const folder = resolve(cwd)
  try {
    if ((await stat(folder)).isDirectory()) {
      await access(folder, constants.X_OK)
      return folder
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw invalidParams(`cwd "${cwd}" does not exist`)
    throw invalidParams(`cwd "${cwd}" cannot be entered: ${messageOf(error)}`)
  }
  throw invalidParams(`cwd "${cwd}" is not a folder`)
}

/** Whether the client is a dsh, which knows what else we put into `_meta`. */
export function tellsDepth({ _meta: meta }: NewSessionRequest): boolean {
  return meta?.['dsh/depth'] !== undefined
}

/** What a header tells of where a session comes from. */
export type Lineage = Pick<SessionHeader, 'delegationDepth' | 'parentSession' | 'origin'>

/** As much of an id or a name as a header takes from another process. */
const shortText = z.string().min(1).max(1024)

const originSchema = z.object({
  runId: shortText,
  parentSessionId: shortText,
  callId: shortText.optional(),
  provider: shortText,
})

/**
 * Where the session is in a tree of delegations that began in another process; at the top when
 * nobody says.
 * @throws RequestError -32602 for what is no depth, and no origin.
 */
export function lineageIn({ _meta: meta }: NewSessionRequest): Lineage {
  const depth = meta?.['dsh/depth'] ?? 0
  if (typeof depth !== 'number' || !Number.isSafeInteger(depth) || depth < 0) {
    throw invalidParams('_meta "dsh/depth" must be a whole number from 0 on')
  }
  const said = meta?.['dsh/origin']
  if (said === undefined) return { delegationDepth: depth }
  const { success, data, error } = originSchema.safeParse(said)
  if (!success) {
    const [issue] = error.issues
    const path = ['dsh/origin', ...(issue?.path ?? [])].join('.')
    throw invalidParams(`_meta "${path}" is not what it must be: ${issue?.message}`)
  }
  if (depth === 0) throw invalidParams('_meta "dsh/origin" needs a "dsh/depth" from 1 on')
  const { parentSessionId, callId, provider } = data
  return {
    delegationDepth: depth,
    parentSession: parentSessionId as SessionId,
    origin: { provider, ...(callId !== undefined && { callId }) },
  }
}

/** The choice of a model. */
export function modelOption(models: readonly ModelInfo[], current: string): SessionConfigOption {
  return {
    type: 'select',
    id: 'model',
    category: 'model',
    name: 'Model',
    currentValue: current,
    options: models.map(({ name }) => ({ value: name, name })),
  }
}
