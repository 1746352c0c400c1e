/** Reads session files. */
import { constants as limits, isUtf8 } from 'node:buffer'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import {
  freezeJson,
  type SessionEvent,
  type SessionHeader,
  type SessionId,
  SessionError,
} from '@deepseek-ai/dsh-session'
import { z } from 'zod'
import { corrupt, SessionFileError } from './errors.ts'
import { fileOf, formatVersion, isTime } from './format.ts'

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
  const bytes = await bytesOf(file)
  // A process that is killed between making the file and writing it leaves it empty.
  if (bytes.length === 0) {
    throw new SessionError('UNKNOWN_SESSION', `no session "${id}" in "${root}"`)
  }
  return parseNamed(bytes, id, file)
}

/**
 * Opens a session's file; the caller closes it.
 * @throws SessionFileError `SESSION_CORRUPT` for what is no file, and what the file system throws.
 */
export async function openSession(file: string): Promise<FileHandle> {
  // A pipe under the name of a session would keep whoever opens it waiting.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  if ((await handle.stat()).isFile()) return handle
  await handle.close()
  throw corrupt(file, 1, 'it is no regular file')
}

/** Empty where there is no file. */
async function bytesOf(file: string): Promise<Buffer> {
  let handle: FileHandle | undefined
  try {
    handle = await openSession(file)
    const { size } = await handle.stat()
    if (size <= limits.MAX_STRING_LENGTH) return await handle.readFile()
    const most = limits.MAX_STRING_LENGTH
    throw corrupt(file, 1, `it has ${size} bytes, of which ${most} at most can be read`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return Buffer.alloc(0)
  } finally {
    await handle?.close()
  }
}

/** @throws as {@link parseSession}, and `SESSION_CORRUPT` for a session under another's name. */
export function parseNamed(bytes: Buffer, id: SessionId, file: string): SessionFile {
  const session = parseSession(bytes, file)
  if (session.header.id !== id) {
    throw corrupt(file, 1, `it is session "${session.header.id}" under another name`)
  }
  return session
}

/** @throws SessionFileError `SESSION_CORRUPT`, `SESSION_VERSION`. */
export function parseSession(bytes: Buffer, file: string): SessionFile {
  const length = bytes.lastIndexOf('\n') + 1
  if (length === 0) throw corrupt(file, 1, 'it has no whole line')
  const whole = bytes.subarray(0, length - 1)
  if (!isUtf8(whole)) throw corrupt(file, lineOfBadBytes(whole), 'it is not UTF-8')
  const lines = whole.toString('utf8').split('\n')
  const header = parseHeader(lines[0] ?? '', file)
  const first = header.seedLength ?? 0
  const events = lines
    .slice(1)
    .map((line, index) => parseEvent(line, first + index, file, index + 2))
  const rest = bytes.subarray(length)
  return {
    header,
    events,
    length,
    ...(rest.length > 0 && { torn: { line: lines.length + 1, bytes: rest } }),
  }
}

function lineOfBadBytes(bytes: Buffer): number {
  for (let line = 1, start = 0; ; line += 1) {
    const end = bytes.indexOf('\n', start)
    if (end === -1 || !isUtf8(bytes.subarray(start, end))) return line
    start = end + 1
  }
}

const count = z.int().nonnegative()

const names = z.array(z.string()).optional()

const headerSchema = z.looseObject({
  id: z.string(),
  createdAt: z.number().refine(isTime, 'expected a time'),
  cwd: z.string().refine(isAbsolute, 'must be an absolute path'),
  parentSession: z.string().optional(),
  seedLength: count.optional(),
  delegationDepth: count,
  origin: z
    .looseObject({
      provider: z.string(),
      callId: z.string().optional(),
      label: z.string().optional(),
      // A filter that cannot be read must not come out as none.
      toolFilters: z.array(z.strictObject({ allow: names, deny: names })).optional(),
    })
    .optional(),
})

const content = z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))
const call = { callId: z.string(), name: z.string() }

/** As much as a reader relies on; what else a line holds is kept. */
const dataSchemas: Readonly<Record<SessionEvent['type'], z.ZodType>> = {
  'turn/start': z.looseObject({ turn: count, model: z.string() }),
  'user/message': z.looseObject({ content }),
  'context/message': z.looseObject({ content, source: z.string() }),
  'step/start': z.looseObject({ step: count }),
  'assistant/message': z.looseObject({
    content,
    model: z.string(),
    usage: z.looseObject({ inputTokens: z.number(), outputTokens: z.number() }),
    finish: z.string(),
  }),
  'tool/call': z.looseObject({ ...call, input: z.unknown() }),
  'tool/result': z.looseObject({ ...call, content, isError: z.boolean() }),
  'step/end': z.looseObject({ step: count }),
  'turn/end': z.looseObject({ reason: z.string() }),
}

function parseHeader(line: string, file: string): SessionHeader {
  const { type, version, header } = parseObject(line, file, 1)
  if (type !== 'session') throw corrupt(file, 1, 'it is not a session header')
  if (version !== formatVersion) {
    throw new SessionFileError(
      'SESSION_VERSION',
      `${file}:1: session format version "${String(version)}" is not supported (supported: ${formatVersion}); nothing was changed`,
    )
  }
  check(headerSchema, header, file, 1)
  return freezeJson(header) as SessionHeader
}

function parseEvent(line: string, seq: number, file: string, number: number): SessionEvent {
  const value = parseObject(line, file, number)
  const { type, data, time } = value
  if (typeof type !== 'string' || !Object.hasOwn(dataSchemas, type)) {
    throw corrupt(file, number, `unknown event type ${JSON.stringify(type)}`)
  }
  if (value['seq'] !== seq) {
    throw corrupt(file, number, `seq is ${JSON.stringify(value['seq'])}, expected ${seq}`)
  }
  if (!isTime(time)) throw corrupt(file, number, 'the event has no time')
  check(dataSchemas[type as SessionEvent['type']], data, file, number)
  // Frozen as it was when it was appended: the event around it counts for no depth.
  return Object.freeze({ ...value, data: freezeJson(data) }) as unknown as SessionEvent
}

function check(schema: z.ZodType, value: unknown, file: string, number: number): void {
  const { success, error } = schema.safeParse(value)
  if (success) return
  const [issue] = error.issues
  const path = issue?.path.join('.') || 'it'
  throw corrupt(file, number, `${path}: ${issue?.message}`)
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
