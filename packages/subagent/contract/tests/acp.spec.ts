import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeSubagentContract, isRunning, loadEntry } from '../src/index.ts'

const agent = fileURLToPath(new URL('./fixtures/acp-agent.ts', import.meta.url))
const entry = {
  name: '@deepseek-ai/dsh-subagent-acp',
  config: {
    command: process.execPath,
    args: [agent],
    disposeEofGraceMs: 200,
    disposeGraceMs: 200,
  },
}

describeSubagentContract('subagent-acp', {
  providerName: 'acp',
  capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
  inheritsParentContext: false,
  isInProcess: false,
  takesMessages: false,
  takesPrompts: false,
  reportsUsage: false,
  processes: { entry: () => entry, pids: pidsIn },
  load: async (ctx, folder) => ({
    fiber: await loadEntry(ctx, entry.name, entry.config),
    started: () => pidsIn(folder).length,
    alive: () => pidsIn(folder).filter(isRunning).length,
  }),
})

/** The agents leave their ids in the folder that they work in. */
function pidsIn(folder: string): number[] {
  const pids = join(folder, 'pids')
  return existsSync(pids) ? readdirSync(pids).map(Number) : []
}
