/** Which process a mark names, and whether it still lives. */
import { readFileSync } from 'node:fs'

/** Tells this process from others that have had its pid, as the processes of a container often do. */
const ownStart = statOf(process.pid)?.start ?? String(Math.round(performance.timeOrigin))

/** Names this process for as long as the machine is up: its pid, and when it started. */
export const ownMark = `${process.pid} ${ownStart}`

/** The pid of the process that a mark names; absent when it is gone, or the mark is none. */
export function livingOwner(mark: string): number | undefined {
  const [digits = '', start] = mark.trim().split(' ')
  const pid = Number(digits)
  if (!Number.isSafeInteger(pid) || pid <= 0 || !hasProcess(pid)) return undefined
  const stat = statOf(pid)
  if (stat?.isDead === true) return undefined
  // Where the system tells no start, only the own one is known.
  const known = stat?.start ?? (pid === process.pid ? ownStart : start)
  return start === known ? pid : undefined
}

function hasProcess(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // It lives, but belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

interface ProcessStat {
  /** Whether it has ended, and only waits for its parent to take notice. */
  readonly isDead: boolean
  /** In clock ticks since the machine started; absent where that is not told. */
  readonly start?: string
}

/** Absent where there is no such file. */
function statOf(pid: number): ProcessStat | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    // Another system, a process that has just gone, or one that is hidden.
    return undefined
  }
}

/** Source: proc_pid_stat(5). */
export function parseStat(text: string): ProcessStat {
  // The second field is a name, which may hold anything; the third and the twenty-second count.
  const [state = '', ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const start = fields[18]
  // Sandboxes that imitate a kernel say 0 of every process.
  const isTold = start !== undefined && start !== '0'
  return { isDead: 'ZXx'.includes(state), ...(isTold && { start }) }
}
