/** Runs commands, and looks at the processes of this machine. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { BashRequest, BashResult } from '@deepseek-ai/dsh-bash'
import { onTestFinished } from 'vitest'
import type { Config } from '../src/index.ts'
import { LocalBash } from '../src/local-bash.ts'

/** An executor, disposed after the test; it must not have warned. */
export function createBash(overrides: Partial<Config> = {}): LocalBash {
  const warnings: string[] = []
  const bash = new LocalBash(
    {
      timeoutMs: 10_000,
      maxTimeoutMs: 20_000,
      graceMs: 5000,
      maxOutputBytes: 1000,
      maxFileBytes: 100_000,
      env: {},
      ...overrides,
    },
    (message) => warnings.push(message),
  )
  onTestFinished(async () => {
    await bash.dispose()
    if (warnings.length > 0) throw new Error(warnings.join('\n'))
  })
  return bash
}

/** Runs one command in `/`, by an executor of its own unless told which. */
export function run(
  command: string,
  request: Partial<BashRequest> = {},
  bash: LocalBash = createBash(),
): Promise<BashResult> {
  return bash.execute({ command, cwd: '/', ...request })
}

/** The command line that runs a fixture program. */
export function fixture(name: string): string {
  const path = fileURLToPath(new URL(`fixtures/${name}.ts`, import.meta.url))
  return `'${process.execPath}' '${path}'`
}

/** The pids that an output names as `pid N`. */
export function pidsIn(output: string): number[] {
  return Array.from(output.matchAll(/pid (\d+)/g), (match) => Number(match[1]))
}

/** Whether a process runs; one that is dead and not collected does not. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat[stat.lastIndexOf(')') + 2] !== 'Z'
  } catch {
    return false
  }
}

/** What a run may leave behind in this process: children, open files, listeners. */
export function leftovers(): unknown {
  const { stdout } = spawnSync('ps', ['-o', 'args=', '--ppid', `${process.pid}`])
  const children = stdout
    .toString()
    .split('\n')
    .filter((line) => !line.startsWith('ps -o'))
  const listeners = process.eventNames().map((name) => [name, process.listenerCount(name)])
  return { children, files: readdirSync('/proc/self/fd').length, listeners }
}

/** Moves the temporary files of this process, until the test is finished. */
export function setTemporaryFolder(folder: string): void {
  const before = process.env['TMPDIR']
  process.env['TMPDIR'] = folder
  onTestFinished(() => {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
  })
}
