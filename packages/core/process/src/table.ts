/** The processes of this machine: from `/proc` where there is one, else from `ps`. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'

export interface ProcessEntry {
  readonly pid: number
  readonly parent: number
  readonly group: number
  /** When it started; only comparable within one table. With the pid it identifies a process. */
  readonly bornAt: number
  /** It runs no more, and waits to be collected by its parent. */
  readonly isZombie: boolean
  /** Whether a text occurs in the environment that it was started with. */
  carries(text: string): boolean
}

export interface ProcessTable {
  /** When a process that was just started was born. */
  bornAt(pid: number): number
  read(): Promise<ProcessEntry[]>
  /** As `read`, where that needs no other process. */
  readNow(): ProcessEntry[]
}

/** Reads `/proc`: under a millisecond for a hundred processes. */
export const procTable: ProcessTable = {
  bornAt: (pid) => entryOf(pid)?.bornAt ?? 0,
  read: async () => procTable.readNow(),
  readNow: () =>
    readdirSync('/proc')
      .filter((name) => /^\d/.test(name))
      .flatMap((name) => entryOf(Number(name)) ?? []),
}

/** Asks `ps`, as on macOS, where it hides the environment of protected programs. */
export const psTable: ProcessTable = {
  // `ps` knows whole seconds, counted from the boot: where the clock was set since, it is off by some.
  bornAt: () => Math.floor(Date.now() / 1000) - 5,
  read: readPs,
  readNow: () => [],
}

export const machineTable: ProcessTable = existsSync('/proc/self/stat') ? procTable : psTable

function entryOf(pid: number): ProcessEntry | undefined {
  const stat = readProc(pid, 'stat')
  if (stat === '') return undefined
  // The name of the program, in brackets, may hold anything; fields are counted after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    bornAt: Number(fields[19]),
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
    carries: (text) => readProc(pid, 'environ').includes(text),
  }
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    // It is gone, or belongs to another user.
    return ''
  }
}

async function readPs(): Promise<ProcessEntry[]> {
  const format = 'pid=,ppid=,pgid=,stat=,lstart=,command='
  const flags = process.platform === 'darwin' ? '-AEww' : 'axeww'
  try {
    const { stdout } = await promisify(execFile)('ps', [flags, '-o', format], {
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
      maxBuffer: 1 << 28,
    })
    return stdout.split('\n').flatMap((line) => entryOfPs(line) ?? [])
  } catch (error) {
    // Without `ps` only the process group can be ended.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function entryOfPs(line: string): ProcessEntry | undefined {
  const match = /^ *(\d+) +(\d+) +(\d+) +(\S+) +(\w+ +\w+ +\d+ +[\d:]+ +\d+) (.*)$/.exec(line)
  if (match === null) return undefined
  const [, pid, parent, group, state = '', started = '', command = ''] = match
  return {
    pid: Number(pid),
    parent: Number(parent),
    group: Number(group),
    bornAt: Date.parse(started) / 1000,
    isZombie: state.startsWith('Z'),
    carries: (text) => command.includes(text),
  }
}
