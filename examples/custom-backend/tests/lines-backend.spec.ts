import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import { describeSubagentContract, isRunning, loadEntry } from '@deepseek-ai/dsh-subagent-contract'
import { bootYml, scriptedModel, temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'

const execFileAsync = promisify(execFile)
const dsh = fileURLToPath(new URL('bin.ts', import.meta.resolve('@deepseek-ai/dsh')))
const yml = fileURLToPath(new URL('../cordis.yml', import.meta.url))
const part = fileURLToPath(new URL('./fixtures/part.ts', import.meta.url))

const entry = {
  name: new URL('../lines-backend.ts', import.meta.url).href,
  config: { command: process.execPath, args: [part], graceMs: 200 },
}

describeSubagentContract('lines-backend', {
  providerName: 'lines',
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

describe('lines-backend', () => {
  test('answers through its yml, the real command and its program', async () => {
    const cwd = await temporaryFolder()

    const { stdout } = await execFileAsync(process.execPath, [dsh, yml, '-p', 'who?'], { cwd })

    expect(stdout).toContain('My helper says:')
    expect(stdout).toContain('You asked: who?. There are 0 files here.')
  })

  test.each([
    ['a program that is missing', ['./nothing'], 'no command'],
    ['a program that speaks another language', [process.execPath, '-p', '1'], 'a line that is not'],
  ])('%s is an error that says so', async (_, [command, ...args], expected) => {
    const { ctx, parent } = await createParent({ command, args })

    const run = ctx.subagents.start('lines', { prompt: 'go', parent })

    const { stopReason, diagnostic } = await run.result
    await run.dispose()
    expect(stopReason).toBe('error')
    expect(diagnostic).toContain(expected)
  })

  test('an option that the program cannot honour is refused', async () => {
    const { ctx, parent } = await createParent(entry.config)
    const request = { prompt: 'go', parent, agentOptions: { model: 'other' } }

    expect(() => ctx.subagents.start('lines', request)).toThrow('cannot take agentOptions "model"')
  })
})

async function createParent(config: object): Promise<{ ctx: Context; parent: Agent }> {
  const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
`)
  ctx.llm.registerAdapter(scriptedModel([]))
  await loadEntry(ctx, entry.name, { ...config })
  const { agent: parent } = ctx.agents.create({ cwd: await temporaryFolder() })
  return { ctx, parent }
}

/** The programs leave their ids in the folder that they work in. */
function pidsIn(folder: string): number[] {
  const pids = join(folder, 'pids')
  return existsSync(pids) ? readdirSync(pids).map(Number) : []
}
