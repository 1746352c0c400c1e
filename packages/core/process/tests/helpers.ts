/** Starts fixture programs, and looks at the processes of this machine. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import {
  type CareProcess,
  cleanEnvironment,
  startProcess,
  type StartOptions,
} from '../src/index.ts'

/** The path of a fixture program. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`fixtures/${name}.ts`, import.meta.url))
}

/** Starts a fixture program; it is stopped after the test at the latest. */
export function startFixture(
  [name, ...args]: readonly [string, ...string[]],
  options: Partial<StartOptions> = {},
): CareProcess {
  return start({ command: process.execPath, args: [fixture(name), ...args], ...options })
}

/** Starts a command in `/`; it is stopped after the test at the latest. */
export function start(options: Partial<StartOptions> & Pick<StartOptions, 'command'>): CareProcess {
  const child = startProcess({ cwd: '/', env: cleanEnvironment(), ...options })
  onTestFinished(async () => void (await child.stop({ termGraceMs: 0 })))
  child.stderr.resume()
  return child
}

/** The pids that a program has said, once there are `count`. */
export async function pidsOf({ stdout }: { stdout: Readable }, count: number): Promise<number[]> {
  let text = ''
  stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const pids = (): number[] =>
    Array.from(text.matchAll(/pid (\d+)\n/g), (match) => Number(match[1]))
  await waitFor(`${count} pids`, () => pids().length >= count)
  return pids()
}

/** Whether a process runs; one that is dead and not collected does not. */
export function isAlive(pid: number | undefined): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat[stat.lastIndexOf(')') + 2] !== 'Z'
  } catch {
    return false
  }
}

/** The direct children of this process, by the kernel's account. */
export function childrenOfTest(): string[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=,args=', '--ppid', `${process.pid}`])
  return stdout
    .toString()
    .split('\n')
    .filter((line) => line !== '' && !line.includes(' ps -o'))
}

/** The open files of this process. */
export function openFiles(): number {
  return readdirSync('/proc/self/fd').length
}

/** All that a stream gives. */
export async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
