/** Runs the scenarios, each repetition in a process of its own, and prints medians. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { median, type Sample } from './measure.ts'
import { number, writeReport } from './report.ts'
import { type Scenario, scenarios } from './scenarios.ts'

interface Figure {
  readonly name: string
  readonly title: string
  readonly unit: Scenario['unit']
  readonly goal: number
  readonly median: number
  readonly min: number
  readonly max: number
  /** Median; absent for what other processes do. */
  readonly cpu?: number
  /** Medians. */
  readonly parts?: Readonly<Record<string, number>>
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
  process.stdout.write(JSON.stringify(await scenarioOf(name).measure()))
}

async function measureAll(wanted: readonly string[], repeat: number): Promise<void> {
  const names = wanted.length > 0 ? wanted : Object.keys(scenarios)
  const samples = new Map(names.map((name): [string, Sample[]] => [name, []]))
  // Interleaved, so that a machine whose speed drifts does not favour one scenario.
  for (let run = 0; run < repeat; run += 1) {
    for (const [name, taken] of samples) taken.push(await sample(name))
  }
  const figures = Array.from(samples, ([name, taken]) => figureOf(name, taken))
  for (const figure of figures) process.stdout.write(`${row(figure)}\n`)
  writeReport('latest.json', { repeat, figures })
}

async function sample(name: string): Promise<Sample> {
  scenarioOf(name)
  const file = fileURLToPath(import.meta.url)
  const args = ['--expose-gc', file, '--child', name]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout) as Sample
}

function scenarioOf(name: string): Scenario {
  const scenario = scenarios[name]
  if (scenario !== undefined) return scenario
  throw new Error(`no scenario "${name}" (there are: ${Object.keys(scenarios).join(', ')})`)
}

function figureOf(name: string, samples: readonly Sample[]): Figure {
  const { title, unit, goal } = scenarioOf(name)
  const all = samples.map(({ value }) => value)
  const cpu = samples.flatMap((each) => each.cpu ?? [])
  const parts = Object.keys(samples[0]?.parts ?? {}).map((part): [string, number] => [
    part,
    median(samples.map((each) => each.parts?.[part] ?? Number.NaN)),
  ])
  return {
    name,
    title,
    unit,
    goal,
    median: median(all),
    min: Math.min(...all),
    max: Math.max(...all),
    ...(cpu.length > 0 && { cpu: median(cpu) }),
    ...(parts.length > 0 && { parts: Object.fromEntries(parts) }),
  }
}

function row({ title, unit, goal, median: middle, min, max, cpu, parts = {} }: Figure): string {
  const columns = [
    title.padEnd(49),
    `${number(middle).padStart(6)} ${unit.padEnd(5)}`,
    `(${number(min)} to ${number(max)})`.padEnd(16),
    (cpu === undefined ? '' : `CPU ${number(cpu)}`).padEnd(9),
    `goal ${goal}${middle <= goal ? '' : ', missed'}`,
  ]
  const details = Object.entries(parts).map(([part, value]) => `${part} ${number(value)}`)
  return details.length === 0
    ? columns.join(' ')
    : `${columns.join(' ')}\n    ${details.join(', ')}`
}
