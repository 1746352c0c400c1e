/** What a run of the benchmarks leaves: a file with the figures and where they were taken. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'

/** Writes into `results`, with commit, date and machine. */
export function writeReport(file: string, results: object): void {
  const folder = fileURLToPath(new URL('../results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const report = {
    commit: commit(),
    date: new Date().toISOString(),
    machine: machine(),
    ...results,
  }
  writeFileSync(`${folder}${file}`, `${JSON.stringify(report, undefined, 2)}\n`)
}

/** With as many digits as say something. */
export function number(value: number): string {
  return value.toFixed(Math.abs(value) < 10 ? 2 : 0)
}

function machine(): object {
  // The load tells whether the machine had other work.
  const [load] = loadavg()
  return { cpu: cpus()[0]?.model, cores: availableParallelism(), node: process.version, load }
}

/** Absent outside of a clone. */
function commit(): string | undefined {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
}
