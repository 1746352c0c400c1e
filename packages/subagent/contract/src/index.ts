/** The rules of the subagent seam as tests; a backend joins by a {@link ContractBackend}. */
import { describe } from 'vitest'
import type { ContractBackend } from './backend.ts'
import { describeOwners } from './rules/owners.ts'
import { describeResults } from './rules/results.ts'
import { describeStarts } from './rules/starts.ts'
import { describeStops } from './rules/stops.ts'
import { describeTraces } from './rules/traces.ts'

export * from './backend.ts'
export { countAgents, loadEntry } from './bench.ts'
export * from './files.ts'

/** Puts a backend through every rule of the seam. */
export function describeSubagentContract(name: string, backend: ContractBackend): void {
  describe(`the subagent contract of ${name}`, () => {
    describeStarts(backend)
    describeResults(backend)
    describeStops(backend)
    describeOwners(backend)
    describeTraces(backend)
  })
}
