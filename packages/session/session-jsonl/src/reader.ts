/** Reads session files. */
import { readFile } from 'node:fs/promises'
import {
  freezeJson,
  type SessionEvent,
  type SessionHeader,
  type SessionId,
  SessionError,
} from '@deepseek-ai/dsh-session'
import { fileOf, parseEvent, parseHeader } from './format.ts'

/** What a session file holds. */
export interface SessionFile {
  readonly header: SessionHeader
  readonly events: readonly SessionEvent[]
  /** Bytes up to the end of the last whole line. */
  readonly length: number
  /** The line that a crash left unfinished, when there is one: its number, and its bytes. */
  readonly torn?: { readonly line: number; readonly bytes: Buffer }
}

/**
 * Reads a session; a torn last line is left out and told, anything else that is wrong is refused.
 * @throws SessionError `UNKNOWN_SESSION`; SessionFileError `SESSION_CORRUPT`, `SESSION_VERSION`,
 * `INVALID_SESSION_ID`.
 */
export async function readSession(root: string, id: SessionId): Promise<SessionFile> {
  const file = fileOf(root, id)
  const bytes = await readFile(file).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new SessionError('UNKNOWN_SESSION', `no session "${id}" in "${root}"`)
  })
  return parseSession(bytes, file)
}

/** @throws SessionFileError `SESSION_CORRUPT`, `SESSION_VERSION`. */
export function parseSession(bytes: Buffer, file: string): SessionFile {
  const length = bytes.lastIndexOf('\n') + 1
  const lines = bytes.toString('utf8', 0, Math.max(0, length - 1)).split('\n')
  const header = parseHeader(lines[0] ?? '', file)
  const first = header.seedLength ?? 0
  const events = lines
    .slice(1)
    .map((line, index) => freezeJson(parseEvent(line, first + index, file, index + 2)))
  const rest = bytes.subarray(length)
  return {
    header,
    events,
    length,
    ...(rest.length > 0 && { torn: { line: lines.length + 1, bytes: rest } }),
  }
}
