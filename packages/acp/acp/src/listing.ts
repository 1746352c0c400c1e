/** What a client may go on with: the stored sessions, a page at a time. */
import { isAbsolute, resolve } from 'node:path'
import type {
  ListSessionsRequest,
  ListSessionsResponse,
  SessionInfo,
} from '@agentclientprotocol/sdk'
import type { StoredSessionInfo } from '@deepseek-ai/dsh-session'
import { z } from 'zod'
import { invalidParams } from './errors.ts'

const pageSize = 50

/**
 * One page of the sessions that nobody delegated: a child's are reached through its parent.
 * @param stored the session that changed last first.
 * @throws RequestError -32602 for a cwd that is not absolute, and a cursor that is not ours.
 */
export function pageOf(
  stored: readonly StoredSessionInfo[],
  { cwd, cursor }: ListSessionsRequest,
): ListSessionsResponse {
  const folder = typeof cwd === 'string' ? folderOf(cwd) : undefined
  const place = typeof cursor === 'string' ? placeIn(cursor) : undefined
  const found = stored.filter(
    (info) =>
      info.header.delegationDepth === 0 &&
      (folder === undefined || info.header.cwd === folder) &&
      (place === undefined || isBehind(info, place)),
  )
  const page = found.slice(0, pageSize)
  const last = found.length > pageSize ? page.at(-1) : undefined
  return {
    sessions: page.map(toAcpInfo),
    ...(last !== undefined && { nextCursor: cursorAt(last) }),
  }
}

/** The last session of a page. Pages stay whole when sessions come, go and change between them. */
interface Place {
  readonly updatedAt: number
  readonly id: string
}

const placeSchema = z.tuple([z.number(), z.string()])

function cursorAt({ updatedAt, header }: StoredSessionInfo): string {
  return Buffer.from(JSON.stringify([updatedAt, header.id])).toString('base64url')
}

function placeIn(cursor: string): Place {
  try {
    const text = Buffer.from(cursor, 'base64url').toString()
    const [updatedAt, id] = placeSchema.parse(JSON.parse(text))
    return { updatedAt, id }
  } catch {
    throw invalidParams(`the cursor "${cursor.slice(0, 100)}" is not from this list`)
  }
}

function isBehind({ updatedAt, header }: StoredSessionInfo, place: Place): boolean {
  return updatedAt === place.updatedAt ? header.id > place.id : updatedAt < place.updatedAt
}

function folderOf(cwd: string): string {
  if (!isAbsolute(cwd)) throw invalidParams(`cwd "${cwd}" is not an absolute path`)
  return resolve(cwd)
}

function toAcpInfo({ header: { id, cwd }, title, updatedAt }: StoredSessionInfo): SessionInfo {
  return {
    sessionId: id,
    cwd,
    ...(title !== '' && { title }),
    updatedAt: new Date(updatedAt).toISOString(),
  }
}
