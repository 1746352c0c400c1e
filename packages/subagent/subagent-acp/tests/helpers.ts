/** Loads the backend through the Loader, and starts fixture agents with it. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type {
  SubagentResult,
  SubagentRun,
  SubagentStartRequest,
  SubagentUpdate,
} from '@deepseek-ai/dsh-subagent'
import {
  bootYml,
  scriptedModel,
  temporaryFolder,
  type TestContextOptions,
} from '@deepseek-ai/dsh-testkit'
import type { Config } from '../src/index.ts'

/** The config that starts a fixture agent; it is given little time to end. */
export function fixture(
  name: string,
  ...args: string[]
): Pick<Config, 'command' | 'args' | 'disposeEofGraceMs' | 'disposeGraceMs'> {
  const program = fileURLToPath(new URL(`fixtures/${name}.ts`, import.meta.url))
  return {
    command: process.execPath,
    args: [program, ...args],
    disposeEofGraceMs: 2000,
    disposeGraceMs: 500,
  }
}

export interface Bench {
  readonly ctx: Context
  /** A top-level agent, in a temporary folder. */
  readonly parent: Agent
  /** Every update of every run so far, without the run's id. */
  readonly updates: readonly Omit<SubagentUpdate, 'runId'>[]
  readonly start: (prompt?: string, extra?: Partial<SubagentStartRequest>) => SubagentRun
  /** Starts, waits for the result and disposes. */
  readonly delegate: (
    prompt?: string,
    extra?: Partial<SubagentStartRequest>,
  ) => Promise<SubagentResult>
}

/** Boots the host and the backend, once for each config, through the Loader; runs are those of the first. */
export async function createBench(
  config: Partial<Config>,
  options: TestContextOptions & { readonly files?: Readonly<Record<string, string>> } = {},
  ...others: readonly Partial<Config>[]
): Promise<Bench> {
  const ctx = await bootYml(ymlWith(config, ...others), options)
  ctx.llm.registerAdapter(scriptedModel([]))
  const { agent: parent } = ctx.agents.create({ cwd: await temporaryFolder() })
  const updates: Omit<SubagentUpdate, 'runId'>[] = []
  ctx.on('subagent/update', ({ runId: _runId, ...update }) => void updates.push(update))
  const start: Bench['start'] = (prompt = 'go', extra = {}) =>
    ctx.subagents.start(config.providerName ?? 'acp', { prompt, parent, ...extra })
  const delegate: Bench['delegate'] = async (prompt, extra) => {
    const run = start(prompt, extra)
    try {
      return await run.result
    } finally {
      await run.dispose()
    }
  }
  return { ctx, parent, updates, start, delegate }
}

/** Core, seam, and an entry of the backend for each config. */
export function ymlWith(...configs: readonly Partial<Config>[]): string {
  const names = ['@deepseek-ai/dsh-agent-core', '@deepseek-ai/dsh-subagent']
  const backends = configs.map((config) => ({ name: '@deepseek-ai/dsh-subagent-acp', config }))
  return JSON.stringify([...names.map((name) => ({ name })), ...backends])
}

/** Boots a backend, and delegates once. */
export async function delegateOnce(
  config: Partial<Config>,
  prompt?: string,
): Promise<SubagentResult> {
  const { delegate } = await createBench(config)
  return delegate(prompt)
}

export function textOf({ output }: Pick<SubagentResult, 'output'>): string {
  return output.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

/** Whether a process runs; one that is dead and not collected does not. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat[stat.lastIndexOf(')') + 2] !== 'Z'
  } catch {
    return false
  }
}

/** The direct children of this process: agents, and the guards beside them. */
export function childPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d/.test(name) && parentOf(name) === process.pid)
    .map(Number)
}

function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    // It is gone.
    return undefined
  }
}
