/** Measures what other harnesses cost for the same work, side by side and in turns, and prints a table. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { median, type Sample } from '../src/measure.ts'
import { number, writeReport } from '../src/report.ts'
import type { Adapter } from './peer.ts'

/** In the order in which they are run and shown. */
const names = [
  'raw',
  'dsh',
  'ai-sdk-generate',
  'ai-sdk-stream',
  'google-adk',
  'openai-agents',
  'deepagents',
  'mastra',
]

const scenarios = {
  sequential: 'one delegation, sequential, µs',
  parallel: '200 parents in parallel, µs each',
  fanOut: '50 calls in one message, µs each',
  deltas: 'a child streams 200 deltas, µs',
  heapLive: 'heap per live delegation, KB',
  start: 'process start to first delegation, ms',
  late: 'one delegation in a parent of 5,000 turns, ms',
  lateFork: 'the same by fork, ms',
}
type ScenarioName = keyof typeof scenarios

interface PeerFigures {
  readonly name: string
  readonly title: string
  readonly version?: string
  readonly figures: Partial<Record<ScenarioName, { wall: number; cpu?: number }>>
  /** Why a figure is missing. */
  readonly missing: Partial<Record<ScenarioName | 'all', string>>
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { repeat: { type: 'string', default: '5' } },
})

const run = promisify(execFile)
const wanted = positionals.length > 0 ? positionals : names
const samples = new Map(wanted.map((name): [string, Record<string, Sample>[]] => [name, []]))
const failures = new Map<string, string>()
for (let round = 0; round < Number(values.repeat); round += 1) {
  for (const [name, taken] of samples) {
    if (failures.has(name)) continue
    try {
      taken.push(await sample(name))
    } catch (error) {
      failures.set(name, reasonOf(error))
    }
  }
}
const peers = await Promise.all(Array.from(samples, ([name, taken]) => figuresOf(name, taken)))
print(peers)
writeReport('peers.json', { repeat: Number(values.repeat), peers })

async function sample(name: string): Promise<Record<string, Sample>> {
  const { stdout } = await node('measure-one.ts', name)
  const begin = performance.now()
  await node('start-one.ts', name)
  const start = { value: performance.now() - begin }
  return {
    ...(JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, Sample>),
    start,
  }
}

function node(file: string, name: string): Promise<{ readonly stdout: string }> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  // The condition is known to our own packages alone: as they are published, without type stripping.
  const args = ['--expose-gc', '--conditions=built', path, name]
  return run(process.execPath, args, { timeout: 120_000 })
}

function reasonOf(error: unknown): string {
  const { stderr = '', message } = error as Error & { readonly stderr?: string }
  return /^\w*Error.*$/m.exec(stderr)?.[0] ?? message.split('\n')[0] ?? 'it failed'
}

async function figuresOf(
  name: string,
  taken: readonly Record<string, Sample>[],
): Promise<PeerFigures> {
  const failure = failures.get(name)
  if (failure !== undefined) return { name, title: name, figures: {}, missing: { all: failure } }
  const { adapter } = (await import(`./adapters/${name}.ts`)) as { readonly adapter: Adapter }
  const { title, package: packageName, withoutDeltas, withoutFork } = adapter
  const version = packageName === undefined ? undefined : await versionOf(packageName)
  const figures: PeerFigures['figures'] = {}
  for (const scenario of Object.keys(scenarios) as ScenarioName[]) {
    const all = taken.flatMap((each) => each[scenario] ?? [])
    if (all.length === 0) continue
    const cpu = all.flatMap((each) => each.cpu ?? [])
    const wall = median(all.map(({ value }) => value))
    figures[scenario] = { wall, ...(cpu.length > 0 && { cpu: median(cpu) }) }
  }
  const missing = {
    ...(withoutDeltas !== undefined && { deltas: withoutDeltas }),
    ...(withoutFork !== undefined && { lateFork: withoutFork }),
  }
  return { name, title, ...(version !== undefined && { version }), figures, missing }
}

async function versionOf(packageName: string): Promise<string | undefined> {
  const path = new URL(`node_modules/${packageName}/package.json`, import.meta.url)
  return (JSON.parse(await readFile(path, 'utf8')) as { readonly version?: string }).version
}

/** Markdown, wall and in brackets CPU; a dash where a harness does not offer it, with the reason below. */
function print(all: readonly PeerFigures[]): void {
  const head = ['', ...all.map(({ title, version }) => [title, version].filter(Boolean).join(' '))]
  const rows = (Object.keys(scenarios) as ScenarioName[]).map((scenario) => [
    scenarios[scenario],
    ...all.map(({ figures }) => cell(figures[scenario])),
  ])
  const lines = [head, head.map((_, index) => (index === 0 ? '---' : '---:')), ...rows]
  for (const line of lines) process.stdout.write(`| ${line.join(' | ')} |\n`)
  for (const { title, missing } of all) {
    for (const reason of Object.values(missing)) process.stdout.write(`\n– ${title}: ${reason}`)
  }
  process.stdout.write('\n')
}

function cell(figure: { readonly wall: number; readonly cpu?: number } | undefined): string {
  if (figure === undefined) return '–'
  const { wall, cpu } = figure
  return cpu === undefined ? number(wall) : `${number(wall)} (${number(cpu)})`
}
