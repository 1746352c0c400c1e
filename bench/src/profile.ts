/** Profiles one scenario and prints where its CPU time went: `profile.ts [SCENARIO]`. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Profile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: Frame }[]
  /** Ids of nodes. */
  readonly samples: readonly number[]
  /** In µs, one for each sample. */
  readonly timeDeltas: readonly number[]
}

interface Frame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
}

const shown = 30
/** The one that the most is known to be left of. */
const [name = 'parallel'] = process.argv.slice(2)
const folder = fileURLToPath(new URL(`../results/profile-${name}/`, import.meta.url))

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
const main = fileURLToPath(new URL('main.ts', import.meta.url))
const flags = ['--expose-gc', '--cpu-prof', '--cpu-prof-dir', folder]
execFileSync(process.execPath, [...flags, main, '--child', name], { stdio: 'ignore' })
for (const file of readdirSync(folder)) {
  print(join(folder, file), JSON.parse(readFileSync(join(folder, file), 'utf8')) as Profile)
}

/** Self time by function, and by the folder that the function belongs to. */
function print(path: string, { nodes, samples, timeDeltas }: Profile): void {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const byFunction = new Map<string, number>()
  const byPlace = new Map<string, number>()
  let total = 0
  for (const [index, id] of samples.entries()) {
    const frame = frames.get(id)
    const time = timeDeltas[index] ?? 0
    if (frame === undefined || frame.functionName === '(idle)') continue
    const { functionName, url, lineNumber } = frame
    const place = placeOf(url)
    const title = `${functionName || '(anonymous)'} ${url === '' ? '' : `${place}:${lineNumber + 1}`}`
    byFunction.set(title, (byFunction.get(title) ?? 0) + time)
    const group = url === '' ? functionName : place.replace(/\/[^/]*$/, '')
    byPlace.set(group, (byPlace.get(group) ?? 0) + time)
    total += time
  }
  process.stdout.write(`${path}\n${(total / 1000).toFixed(0)} ms of CPU time\n`)
  for (const times of [byPlace, byFunction]) {
    process.stdout.write('\n')
    const sorted = [...times].toSorted(([, a], [, b]) => b - a).slice(0, shown)
    for (const [title, time] of sorted) {
      process.stdout.write(`${((100 * time) / total).toFixed(1).padStart(5)} %  ${title}\n`)
    }
  }
}

/** A path that begins with the package. */
function placeOf(url: string): string {
  return url
    .replace(/^.*\/node_modules\//, '')
    .replace(/^.*\/packages\/[^/]+\//, '')
    .replace(/^.*\/bench\//, 'bench/')
}
