/** Records what every session was answered, from its log. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Session, SessionEvent } from '@deepseek-ai/dsh-session'
import type { Fixture, RecordedReply } from './fixture.ts'
import { SessionKeys } from './keys.ts'

/** Gathers the replies of all sessions of a context. */
export class Recorder {
  private readonly keys = new SessionKeys()
  private readonly sessions: Record<string, RecordedReply[]> = {}

  onCreated(session: Session): void {
    this.sessions[this.keys.name(session)] = []
  }

  onEvent(session: Session, event: SessionEvent): void {
    const replies = this.sessions[this.keys.get(session.id) ?? '']
    if (replies === undefined) return
    if (event.type === 'assistant/message')
      replies.push(structuredClone(event.data) as RecordedReply)
    if (event.type !== 'turn/end' || event.data.error === undefined) return
    const last = replies.at(-1)
    if (last?.finish === 'error') last.error = event.data.error
  }

  /** Writes the fixture whole or not at all. */
  write(path: string): void {
    const fixture: Fixture = { version: 1, sessions: this.sessions }
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(`${path}.tmp`, `${JSON.stringify(fixture, undefined, 2)}\n`)
    renameSync(`${path}.tmp`, path)
  }
}
