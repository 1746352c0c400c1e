/** Keeps two processes from writing one session. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { SessionFileError } from './errors.ts'

/**
 * Takes the lock of a session file until the returned function is called; a lock whose process is
 * gone is taken over.
 * @throws SessionFileError `SESSION_IN_USE` naming the process.
 */
export function lockFile(file: string): () => void {
  const lock = `${file}.lock`
  for (let attempt = 0; ; attempt += 1) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx', mode: 0o600 })
      return () => rmSync(lock, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || attempt > 0) throw error
      const owner = lockOwner(file)
      if (owner !== undefined) {
        throw new SessionFileError(
          'SESSION_IN_USE',
          `"${file}" is being written by process ${owner}: end it, or resume another session`,
        )
      }
      rmSync(lock, { force: true })
    }
  }
}

/** The process that writes a session file; absent when none that lives does. */
export function lockOwner(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(`${file}.lock`, 'utf8'))
    if (!Number.isSafeInteger(pid) || pid <= 0) return undefined
    process.kill(pid, 0)
    return pid
  } catch (error) {
    // EPERM: it lives, but belongs to somebody else.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return undefined
    return Number(readFileSync(`${file}.lock`, 'utf8'))
  }
}
