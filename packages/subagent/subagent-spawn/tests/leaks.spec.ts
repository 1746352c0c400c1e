import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

interface Report {
  readonly before: Record<string, number>
  readonly afterSequential: Record<string, number>
  readonly afterParallel: Record<string, number>
  readonly bytesPerSequentialRun: number
  readonly bytesPerRun: number
  readonly uncollectedRuns: number
  readonly warnings: readonly string[]
}

/** Runs the fixture in a process of its own, whose heap nobody else fills. */
async function delegateManyTimes(): Promise<Report> {
  const program = fileURLToPath(new URL('fixtures/many-runs.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', program])
  return JSON.parse(stdout) as Report
}

describe('1,000 runs one after another and 200 at once', () => {
  test('leave nothing behind: no agent, session, run, listener, timer, object or memory', async () => {
    const report = await delegateManyTimes()

    expect(report.before).toEqual({
      agents: 1,
      sessions: 1,
      runs: 0,
      signalListeners: 0,
      contextListeners: expect.any(Number) as number,
      processListeners: expect.any(Number) as number,
      handles: 0,
    })
    expect(report.afterSequential).toEqual(report.before)
    expect(report.afterParallel).toEqual(report.before)
    expect(report.uncollectedRuns).toBe(0)
    expect(report.bytesPerSequentialRun).toBeLessThan(1024)
    expect(report.bytesPerRun).toBeLessThan(1024)
    expect(report.warnings).toEqual([])
  }, 60_000)
})
