/** What a folder of session files tells at a glance. */
import { addUsage, isHarnessError, messageOf, noUsage, type Usage } from '@deepseek-ai/dsh-llm'
import type { SessionHeader, SessionId, TurnEndReason } from '@deepseek-ai/dsh-session'
import { fileOf } from './format.ts'
import { idsIn, titleOf } from './glance.ts'
import { lockOwner } from './lock.ts'
import { readSession } from './reader.ts'

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
  /** The label of a child, else the start of the first user message, in one line. */
  readonly title: string
}

export interface SessionListing {
  /** Oldest first. */
  readonly sessions: readonly SessionSummary[]
  /** One line for each file that could not be read. */
  readonly problems: readonly string[]
}

/** Reads the sessions of a folder, one whole log at a time; a folder that does not exist has none. */
export async function listSessions(root: string): Promise<SessionListing> {
  const sessions: SessionSummary[] = []
  const problems: string[] = []
  for (const id of await idsIn(root)) {
    try {
      sessions.push(await summaryOf(root, id))
    } catch (error) {
      // Gone meanwhile, or never written.
      if (isHarnessError(error) && error.code === 'UNKNOWN_SESSION') continue
      problems.push(isHarnessError(error) ? error.message : `"${id}": ${messageOf(error)}`)
    }
  }
  return {
    sessions: sessions.toSorted((a, b) => a.header.createdAt - b.header.createdAt),
    problems,
  }
}

async function summaryOf(root: string, id: SessionId): Promise<SessionSummary> {
  // First: a process that ends meanwhile has written its last turn's end.
  const isWritten = lockOwner(fileOf(root, id)) !== undefined
  const file = await readSession(root, id)
  const { header, events } = file
  let usage = noUsage
  let turns = 0
  let state: SessionState = 'empty'
  for (const event of events) {
    if (event.type === 'turn/start') {
      turns += 1
      state = isWritten ? 'running' : 'interrupted'
    } else if (event.type === 'turn/end') state = event.data.reason
    else if (event.type === 'assistant/message') usage = addUsage(usage, event.data.usage)
  }
  const updatedAt = events.at(-1)?.time ?? header.createdAt
  return { header, state, updatedAt, turns, usage, title: titleOf(file) }
}
