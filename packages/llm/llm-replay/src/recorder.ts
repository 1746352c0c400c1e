/** Records what every session was answered, from its log. */
import { createHash } from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Session, SessionEvent } from '@deepseek-ai/dsh-session'
import type { Fixture, RecordedReply } from './fixture.ts'
import { SessionKeys, topOf } from './keys.ts'

const maxNameLength = 100

/** Gathers the replies of all sessions of a context. */
export class Recorder {
  private readonly keys = new SessionKeys()
  private readonly sessions = new Map<string, RecordedReply[]>()

  onCreated(session: Session): void {
    this.sessions.set(this.keys.name(session), [])
  }

  onEvent(session: Session, event: SessionEvent): void {
    const replies = this.sessions.get(this.keys.get(session.id) ?? '')
    if (event.type === 'assistant/message') {
      replies?.push(structuredClone(event.data) as RecordedReply)
    } else if (event.type === 'turn/end' && event.data.error !== undefined) {
      const last = replies?.at(-1)
      if (last?.finish === 'error') last.error = event.data.error
    }
  }

  /**
   * Writes the fixture whole or not at all, in an order that does not depend on the interleaving.
   * @param path of a file; or, with a slash at its end, of a folder that gets a file for each
   * topmost session, so that several processes can share it.
   */
  write(path: string): void {
    const sessions = [...this.sessions]
      .filter(([, replies]) => replies.length > 0)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
    if (!path.endsWith('/')) return writeFixture(path, sessions)
    for (const [top, those] of Map.groupBy(sessions, ([key]) => topOf(key))) {
      writeFixture(`${path}${fileNameOf(top)}.json`, those)
    }
  }
}

/** A call's id is the model's own word, of any length and of any characters. */
function fileNameOf(key: string): string {
  const name = key.replace('/', '.').replace(/[^\w.%#-]/gu, encodeURIComponent)
  if (name.length <= maxNameLength) return name
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 16)
  return `${name.slice(0, maxNameLength)}.${hash}`
}

function writeFixture(path: string, sessions: readonly [string, RecordedReply[]][]): void {
  const fixture: Fixture = { version: 1, sessions: Object.fromEntries(sessions) }
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.tmp`, `${JSON.stringify(fixture, undefined, 2)}\n`)
  renameSync(`${path}.tmp`, path)
}
