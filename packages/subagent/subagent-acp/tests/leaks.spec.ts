import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

interface Report {
  readonly before: Record<string, number>
  readonly afterSequential: Record<string, number>
  readonly afterParallel: Record<string, number>
  readonly bytesPerSequentialRun: number
  readonly bytesPerParallelRun: number
  readonly uncollectedRuns: number
  readonly warnings: readonly string[]
}

/** Runs the fixture in a process of its own, whose heap nobody else fills. */
async function delegateManyTimes(): Promise<Report> {
  const program = fileURLToPath(new URL('fixtures/many-runs.ts', import.meta.url))
  const flags = ['--expose-gc', '--no-flush-bytecode']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, program])
  return JSON.parse(stdout) as Report
}

describe('50 runs one after another and 20 at once', () => {
  test('leave nothing behind: no process, file, listener, timer, object or memory', async () => {
    const report = await delegateManyTimes()

    expect(report.before).toMatchObject({ children: 0, runs: 0, signalListeners: 0 })
    expect(report.afterSequential).toEqual(report.before)
    expect(report.afterParallel).toEqual(report.before)
    expect(report.uncollectedRuns).toBe(0)
    expect(report.bytesPerSequentialRun).toBeLessThan(1024)
    expect(report.bytesPerParallelRun).toBeLessThan(1024)
    expect(report.warnings).toEqual([])
  }, 120_000)
})
