/** What children of any kind, and their tests, look at in the file system. */
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** Waits until a file is there; so a child waits at its gate. */
export async function untilExists(path: string): Promise<void> {
  const end = performance.now() + 10_000
  while (!existsSync(path) && performance.now() < end) await delay(5, undefined, { ref: false })
}

/** Whether a process works; one that only waits to be reaped does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const stat = `/proc/${pid}/stat`
  return !existsSync(stat) || !/\) Z/.test(readFileSync(stat, 'utf8'))
}
