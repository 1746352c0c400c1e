/** What a folder of session files tells at a glance. */
import { readdir } from 'node:fs/promises'
import { addUsage, isHarnessError, noUsage, type Usage } from '@deepseek-ai/dsh-llm'
import type { SessionHeader, SessionId, TurnEndReason } from '@deepseek-ai/dsh-session'
import { fileOf } from './format.ts'
import { lockOwner } from './lock.ts'
import { readSession, type SessionFile } from './reader.ts'

/** `running` only while a living process writes it; `empty` has no turn; otherwise the last turn's end. */
export type SessionState = TurnEndReason | 'running' | 'empty'

export interface SessionSummary {
  readonly header: SessionHeader
  readonly state: SessionState
  /** Epoch ms of the last event, else of the creation. */
  readonly updatedAt: number
  readonly turns: number
  /** The session's own tokens. */
  readonly usage: Usage
  /** The start of the first user message, in one line. */
  readonly title: string
}

export interface SessionListing {
  /** Oldest first. */
  readonly sessions: readonly SessionSummary[]
  /** One line for each file that could not be read. */
  readonly problems: readonly string[]
}

/** Lists the sessions of a folder; a folder that does not exist has none. */
export async function listSessions(root: string): Promise<SessionListing> {
  const names = await readdir(root).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  })
  const files: SessionFile[] = []
  const problems: string[] = []
  for (const name of names.filter((item) => item.endsWith('.jsonl'))) {
    try {
      files.push(await readSession(root, name.slice(0, -'.jsonl'.length) as SessionId))
    } catch (error) {
      if (!isHarnessError(error)) throw error
      problems.push(error.message)
    }
  }
  const running = new Set(
    files
      .filter(({ header }) => lockOwner(fileOf(root, header.id)) !== undefined)
      .map(({ header }) => header.id),
  )
  const headers = new Map(files.map(({ header }) => [header.id, header]))
  const sessions = files
    .map((file) => summaryOf(file, running.has(rootOf(file.header, headers).id)))
    .toSorted((a, b) => a.header.createdAt - b.header.createdAt)
  return { sessions, problems }
}

/** The topmost session of the tree: the one that holds the lock. */
function rootOf(
  header: SessionHeader,
  headers: ReadonlyMap<SessionId, SessionHeader>,
): SessionHeader {
  let top = header
  for (let steps = 0; steps <= headers.size; steps += 1) {
    const parent = top.parentSession && headers.get(top.parentSession)
    if (parent === undefined) return top
    top = parent
  }
  return header
}

function summaryOf({ header, events }: SessionFile, isWritten: boolean): SessionSummary {
  let usage = noUsage
  let turns = 0
  let state: SessionState = 'empty'
  let title = ''
  for (const event of events) {
    if (event.type === 'turn/start') {
      turns += 1
      state = isWritten ? 'running' : 'interrupted'
    } else if (event.type === 'turn/end') state = event.data.reason
    else if (event.type === 'assistant/message') usage = addUsage(usage, event.data.usage)
    else if (event.type === 'user/message' && title === '') {
      const first = event.data.content[0]
      title = first?.type === 'text' ? first.text.slice(0, 200).replace(/\s+/g, ' ').trim() : ''
    }
  }
  return { header, state, updatedAt: events.at(-1)?.time ?? header.createdAt, turns, usage, title }
}
