/** The lines of a session file: a header, then one event each. */
import { isAbsolute, join } from 'node:path'
import type { SessionEvent, SessionHeader, SessionId } from '@deepseek-ai/dsh-session'
import { SessionFileError } from './errors.ts'

/** Readers refuse every other version. */
export const formatVersion = 1

const idPattern = /^[A-Za-z0-9_-]{1,128}$/

const eventTypes: ReadonlySet<string> = new Set<SessionEvent['type']>([
  'turn/start',
  'user/message',
  'context/message',
  'step/start',
  'assistant/message',
  'tool/call',
  'tool/result',
  'step/end',
  'turn/end',
])

/** @throws SessionFileError `INVALID_SESSION_ID`: an id becomes a file name. */
export function fileOf(root: string, id: SessionId): string {
  if (!idPattern.test(id)) {
    throw new SessionFileError('INVALID_SESSION_ID', `session id "${id}" must match ${idPattern}`)
  }
  return join(root, `${id}.jsonl`)
}

export function headerLine(header: SessionHeader): string {
  return `${JSON.stringify({ type: 'session', version: formatVersion, header })}\n`
}

export function eventLine(event: SessionEvent): string {
  return `${JSON.stringify(event)}\n`
}

/** @throws SessionFileError `SESSION_CORRUPT`, `SESSION_VERSION`. */
export function parseHeader(line: string, file: string): SessionHeader {
  const value = parseObject(line, file, 1)
  if (value['type'] !== 'session') throw corrupt(file, 1, 'it is not a session header')
  if (value['version'] !== formatVersion) {
    const version = JSON.stringify(value['version'])
    throw new SessionFileError(
      'SESSION_VERSION',
      `${file}: session format version ${version} is not supported (supported: ${formatVersion})`,
    )
  }
  const header = value['header'] as Partial<SessionHeader> | null
  const isWhole =
    typeof header?.id === 'string' &&
    typeof header.createdAt === 'number' &&
    typeof header.cwd === 'string' &&
    isAbsolute(header.cwd) &&
    Number.isSafeInteger(header.delegationDepth)
  if (!isWhole) throw corrupt(file, 1, 'the header lacks id, createdAt, cwd or delegationDepth')
  return header as SessionHeader
}

/** @throws SessionFileError `SESSION_CORRUPT`. */
export function parseEvent(line: string, seq: number, file: string, number: number): SessionEvent {
  const value = parseObject(line, file, number)
  if (typeof value['type'] !== 'string' || !eventTypes.has(value['type'])) {
    throw corrupt(file, number, `unknown event type ${JSON.stringify(value['type'])}`)
  }
  if (value['seq'] !== seq) {
    throw corrupt(file, number, `seq is ${JSON.stringify(value['seq'])}, expected ${seq}`)
  }
  if (typeof value['data'] !== 'object' || value['data'] === null) {
    throw corrupt(file, number, 'the event has no data')
  }
  return value as unknown as SessionEvent
}

function parseObject(line: string, file: string, number: number): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (error) {
    throw corrupt(file, number, 'it is not JSON', error)
  }
  if (typeof value !== 'object' || value === null) throw corrupt(file, number, 'it is no object')
  return value as Record<string, unknown>
}

function corrupt(file: string, number: number, why: string, cause?: unknown): SessionFileError {
  return new SessionFileError(
    'SESSION_CORRUPT',
    `${file}:${number}: the session cannot be read: ${why}; nothing was changed`,
    { cause },
  )
}
