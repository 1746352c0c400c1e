/** The lines of a session file, a header and then one event each, on their way to the disk. */
import { join } from 'node:path'
import type { SessionEvent, SessionHeader, SessionId } from '@deepseek-ai/dsh-session'
import { SessionFileError } from './errors.ts'

/** Readers refuse every other version. */
export const formatVersion = 1

/** What the names of session files end with. */
export const extension = '.jsonl'

const idPattern = /^[A-Za-z0-9_-]{1,128}$/

/** @throws SessionFileError `INVALID_SESSION_ID`: an id becomes a file name. */
export function fileOf(root: string, id: SessionId): string {
  if (!idPattern.test(id)) {
    throw new SessionFileError(
      'INVALID_SESSION_ID',
      `session id "${id}" must be of 1 to 128 letters, digits, "-" and "_"`,
    )
  }
  return join(root, `${id}${extension}`)
}

export function headerLine(header: SessionHeader): string {
  return `${JSON.stringify({ type: 'session', version: formatVersion, header })}\n`
}

export function eventLine(event: SessionEvent): string {
  return `${JSON.stringify(event)}\n`
}

/** Whether it is a number of ms that stands for a time. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && !Number.isNaN(new Date(value).getTime())
}
