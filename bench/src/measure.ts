/** How work is measured: wall and CPU time of many rounds, and the heap after a collection. */

/** What one repetition of a scenario gave. */
export interface Sample {
  readonly value: number
  /** CPU time of this process for the same, in the same unit; absent for what another process does. */
  readonly cpu?: number
  /** Parts of the value or what it is made of, by name, in the order in which they are shown. */
  readonly parts?: Readonly<Record<string, number>>
}

/** Time per round in µs. The rounds run one after another. */
export async function timed(rounds: number, work: () => Promise<unknown>): Promise<Sample> {
  const cpuBefore = process.cpuUsage()
  const begin = performance.now()
  for (let round = 0; round < rounds; round += 1) await work()
  const wallMs = performance.now() - begin
  const { user, system } = process.cpuUsage(cpuBefore)
  return { value: (wallMs * 1000) / rounds, cpu: (user + system) / rounds }
}

/** The same sample in another unit. */
export function scaled({ value, cpu }: Sample, factor: number): Sample {
  return { value: value * factor, ...(cpu !== undefined && { cpu: cpu * factor }) }
}

/** How much more the second work costs than the first, by CPU time: taken in turns, medians. */
export async function ratio(
  blocks: number,
  first: () => Promise<Sample>,
  second: () => Promise<Sample>,
): Promise<{ readonly ratio: number; readonly first: Sample; readonly second: Sample }> {
  const samples: [Sample, Sample][] = []
  for (let block = 0; block < blocks; block += 1) samples.push([await first(), await second()])
  const [one, other] = [
    medianSample(samples.map(([a]) => a)),
    medianSample(samples.map(([, b]) => b)),
  ]
  return { ratio: (other.cpu ?? other.value) / (one.cpu ?? one.value), first: one, second: other }
}

function medianSample(samples: readonly Sample[]): Sample {
  return {
    value: median(samples.map(({ value }) => value)),
    cpu: median(samples.map(({ value, cpu }) => cpu ?? value)),
  }
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

/** In bytes, after all that can be collected was; needs `--expose-gc`. */
export function heapUsed(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
