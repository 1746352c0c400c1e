/** What the beginning and the end of session files tell, without a look at what is between. */
import { type FileHandle, readdir } from 'node:fs/promises'
import { isHarnessError } from '@deepseek-ai/dsh-llm'
import type { SessionId, StoredSessionInfo } from '@deepseek-ai/dsh-session'
import { corrupt } from './errors.ts'
import { extension, fileOf, isTime } from './format.ts'
import { openSession, parseNamed, type SessionFile } from './reader.ts'

const firstBytes = 16 * 1024
/** A first message that is longer gives no title. */
const maxFirstBytes = 256 * 1024
/** The last event of a session at rest is a short one. */
const lastBytes = 4 * 1024
/** Files that are open at the same time. */
const atOnce = 32

/** Tells of every session in a folder; files that cannot be read, or vanish meanwhile, are left out. */
export async function glanceAtAll(root: string): Promise<StoredSessionInfo[]> {
  const ids = await idsIn(root)
  const found: StoredSessionInfo[] = []
  for (let start = 0; start < ids.length; start += atOnce) {
    const group = ids.slice(start, start + atOnce).map((id) => glanceAt(root, id))
    for (const info of await Promise.all(group)) {
      if (info !== undefined) found.push(info)
    }
  }
  return found
}

/** The sessions that have a file; a folder that does not exist has none. */
export async function idsIn(root: string): Promise<SessionId[]> {
  const names = await readdir(root).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  })
  return names
    .filter((name) => name.endsWith(extension))
    .map((name) => name.slice(0, -extension.length) as SessionId)
}

const maxTitleLength = 200

/** The label of a child, else the start of the first user message, in one line. */
export function titleOf({ header, events }: Pick<SessionFile, 'header' | 'events'>): string {
  const { label } = header.origin ?? {}
  if (label !== undefined) return label
  const input = events.find((event) => event.type === 'user/message')
  const text = input?.data.content.find((block) => block.type === 'text')?.text ?? ''
  return text.slice(0, maxTitleLength).toWellFormed().replace(/\s+/g, ' ').trim()
}

async function glanceAt(root: string, id: SessionId): Promise<StoredSessionInfo | undefined> {
  let handle: FileHandle | undefined
  try {
    const file = fileOf(root, id)
    handle = await openSession(file)
    const { size, mtimeMs } = await handle.stat()
    const beginning = await beginningOf(handle, { id, file, size })
    const updatedAt = (await timeOfLastEvent(handle, size)) ?? Math.round(mtimeMs)
    return { header: beginning.header, title: titleOf(beginning), updatedAt }
  } catch (error) {
    if (isHarnessError(error) || (error as NodeJS.ErrnoException).code !== undefined) {
      return undefined
    }
    throw error
  } finally {
    await handle?.close()
  }
}

interface Whole {
  readonly id: SessionId
  readonly file: string
  readonly size: number
}

async function beginningOf(handle: FileHandle, { id, file, size }: Whole): Promise<SessionFile> {
  for (let length = firstBytes; ; length *= 4) {
    const isLast = length >= Math.min(size, maxFirstBytes)
    const bytes = await readAt(handle, 0, Math.min(length, size))
    const lines = bytes.subarray(0, bytes.lastIndexOf('\n') + 1)
    if (lines.length > 0) {
      const beginning = parseNamed(lines, id, file)
      if (isLast || titleOf(beginning) !== '') return beginning
    } else if (isLast) throw corrupt(file, 1, 'it has no whole line')
  }
}

/** Absent when the last whole line is longer than what is read, or no event. */
async function timeOfLastEvent(handle: FileHandle, size: number): Promise<number | undefined> {
  const bytes = await readAt(handle, Math.max(0, size - lastBytes), Math.min(size, lastBytes))
  const line = bytes.toString('utf8').split('\n').at(-2) ?? ''
  try {
    const { time } = JSON.parse(line) as { time?: unknown }
    return isTime(time) ? time : undefined
  } catch {
    // The beginning of the line is not there.
    return undefined
  }
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position)
  return buffer.subarray(0, bytesRead)
}
