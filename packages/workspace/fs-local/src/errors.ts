/** The error of file access, and what the system's own errors become. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type FsErrorCode =
  | 'FILE_NOT_FOUND'
  | 'OUTSIDE_WORKSPACE'
  /** The folder of the agent itself is gone. */
  | 'WORKSPACE_MISSING'
  | 'INVALID_PATH'
  | 'NOT_A_FILE'
  | 'NOT_A_FOLDER'
  /** The system denies it. */
  | 'PERMISSION_DENIED'
  | 'BINARY_FILE'
  | 'FILE_TOO_LARGE'
  /** The first line that was asked for lies past the end of the file. */
  | 'OUT_OF_RANGE'
  | 'NOT_READ'
  | 'STALE_FILE'
  | 'NO_MATCH'
  | 'AMBIGUOUS_MATCH'
  | 'INVALID_EDIT'
  | 'INVALID_TEXT'
  | 'INVALID_PATTERN'
  /** Whatever else the system failed with. */
  | 'FILE_FAILED'
  /** The search program could not be started, or failed. */
  | 'SEARCH_FAILED'
  | 'INVALID_ROOT'

/** A failure of file access. */
export class FsError extends HarnessError<FsErrorCode> {
  override readonly name: string = 'FsError'
}

/** The code of a system error; absent for anything else. */
export function systemCodeOf(error: unknown): string | undefined {
  const isCoded = error instanceof Error && 'code' in error && 'syscall' in error
  return isCoded && typeof error.code === 'string' ? error.code : undefined
}

/** Makes a {@link FsError} of a system error; whatever else was thrown comes back as it is. */
export function fsErrorOf(error: unknown, path: string): unknown {
  const code = systemCodeOf(error)
  if (code === undefined) return error
  const [kind, reason] = reasons[code] ?? ['FILE_FAILED', `cannot be used: the system says ${code}`]
  return new FsError(kind, `${quote(path)} ${reason}`, { cause: error })
}

export function staleError(shown: string): FsError {
  return new FsError(
    'STALE_FILE',
    `${quote(shown)} was changed by someone else since you read it: read it again, then repeat the change`,
  )
}

/** A text in double quotes, with everything escaped that would not survive in a log. */
export function quote(text: string): string {
  return JSON.stringify(text.length > maxQuoted ? `${text.slice(0, maxQuoted)}…` : text)
}

const maxQuoted = 300

const denied = ['PERMISSION_DENIED', 'may not be accessed: the system denies permission'] as const

const reasons: Record<string, readonly [FsErrorCode, string]> = {
  ENOENT: ['FILE_NOT_FOUND', 'does not exist: look for the right path with a glob'],
  ENOTDIR: ['INVALID_PATH', 'leads through a file: only folders contain files'],
  ENAMETOOLONG: ['INVALID_PATH', 'is too long for a path: use a shorter one'],
  ELOOP: ['INVALID_PATH', 'is or leads through a symbolic link that has no end'],
  EISDIR: ['NOT_A_FILE', 'is a folder: name a file'],
  EACCES: denied,
  EPERM: denied,
  EROFS: ['PERMISSION_DENIED', 'is on a read-only file system: write elsewhere'],
  ENOSPC: ['FILE_FAILED', 'was not written: the disk is full'],
}
