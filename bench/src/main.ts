/** Runs the scenarios, each repetition in a process of its own, and prints medians. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { type Scenario, scenarios } from './scenarios.ts'

interface Figure {
  readonly name: string
  readonly title: string
  readonly unit: Scenario['unit']
  readonly goal?: number | undefined
  readonly median: number
  readonly min: number
  readonly max: number
  /** CPU time of the whole process, in ms, median. */
  readonly cpuMs: number
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    repeat: { type: 'string', default: '5' },
    child: { type: 'boolean', default: false },
  },
})

if (values.child) await measureHere(positionals[0] ?? '')
else await measureAll(positionals, Number(values.repeat))

async function measureHere(name: string): Promise<void> {
  const scenario = scenarios[name]
  if (scenario === undefined) throw new Error(`no scenario "${name}"`)
  const figure = await scenario.measure()
  const { user, system } = process.cpuUsage()
  process.stdout.write(`${JSON.stringify({ figure, cpuMs: (user + system) / 1000 })}\n`)
}

async function measureAll(wanted: readonly string[], repeat: number): Promise<void> {
  const names = wanted.length > 0 ? wanted : Object.keys(scenarios)
  const samples = new Map<string, { figure: number; cpuMs: number }[]>()
  // Interleaved, so that a machine whose speed drifts does not favour one scenario.
  for (let run = 0; run < repeat; run += 1) {
    for (const name of names) {
      samples.set(name, [...(samples.get(name) ?? []), await sample(name)])
    }
  }
  const figures = names.map((name) => summary(name, samples.get(name) ?? []))
  for (const figure of figures) process.stdout.write(`${row(figure)}\n`)
  write(figures)
}

async function sample(name: string): Promise<{ figure: number; cpuMs: number }> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--expose-gc',
    fileURLToPath(import.meta.url),
    '--child',
    name,
  ])
  return JSON.parse(stdout) as { figure: number; cpuMs: number }
}

function summary(name: string, all: readonly { figure: number; cpuMs: number }[]): Figure {
  const scenario = scenarios[name]
  if (scenario === undefined) throw new Error(`no scenario "${name}"`)
  const sorted = all.map(({ figure }) => figure).toSorted((a, b) => a - b)
  const cpu = all.map(({ cpuMs }) => cpuMs).toSorted((a, b) => a - b)
  const { title, unit, goal } = scenario
  return {
    name,
    title,
    unit,
    goal,
    median: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN,
    min: sorted[0] ?? Number.NaN,
    max: sorted.at(-1) ?? Number.NaN,
    cpuMs: cpu[Math.floor(cpu.length / 2)] ?? Number.NaN,
  }
}

function row({ title, unit, goal, median, min, max }: Figure): string {
  const aim = goal === undefined ? '' : `  goal ${goal}${median <= goal ? '' : '  MISSED'}`
  const range = `(${number(min)} to ${number(max)})`
  return `${title.padEnd(48)} ${number(median).padStart(8)} ${unit.padEnd(5)} ${range.padEnd(20)}${aim}`
}

function number(value: number): string {
  return value.toFixed(Math.abs(value) < 10 ? 2 : 0)
}

function write(figures: readonly Figure[]): void {
  const folder = fileURLToPath(new URL('../results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  const machine = { cpu: cpus()[0]?.model, cores: availableParallelism(), node: process.version }
  const report = { commit, date: new Date().toISOString(), machine, figures }
  writeFileSync(`${folder}latest.json`, `${JSON.stringify(report, undefined, 2)}\n`)
}
