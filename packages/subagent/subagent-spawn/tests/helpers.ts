/** The spawn backend on real agents, with a scripted model. */
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { ModelRequest } from '@deepseek-ai/dsh-llm'
import type { Session, SessionEvent } from '@deepseek-ai/dsh-session'
import type { SubagentResult, SubagentRun, SubagentStartRequest } from '@deepseek-ai/dsh-subagent'
import {
  type Answer,
  bootYml,
  type ScriptedModel,
  scriptedModel,
  type ScriptedReply,
  type TestContextOptions,
} from '@deepseek-ai/dsh-testkit'
import { z } from 'zod'

export interface BenchOptions extends TestContextOptions {
  /** Default: always says `hello`. */
  readonly model?: Answer | readonly (string | ScriptedReply)[]
  /** More entries. */
  readonly yml?: string
  readonly maxConcurrent?: number
  /** How long a cancelled turn waits for tools that clean up, in ms; default: as shipped. */
  readonly abortGraceMs?: number
}

export interface Bench {
  readonly ctx: Context
  readonly model: ScriptedModel
  /** A top-level agent. */
  readonly parent: Agent
  readonly start: (extra?: Partial<SubagentStartRequest>) => SubagentRun
  /** Starts, waits for the result and disposes. */
  readonly delegate: (extra?: Partial<SubagentStartRequest>) => Promise<SubagentResult>
}

/** Boots host core, seam and backend from yml. */
export async function createBench(options: BenchOptions = {}): Promise<Bench> {
  const { model: script = () => 'hello', yml = '', maxConcurrent = 16, ...others } = options
  const { abortGraceMs, ...rest } = others
  const ctx = await bootYml(
    `
- name: '@deepseek-ai/dsh-agent-core'
  config: ${JSON.stringify({ abortGraceMs })}
- name: '@deepseek-ai/dsh-subagent'
  config: { maxConcurrent: ${maxConcurrent} }
- name: '@deepseek-ai/dsh-subagent-spawn'
${yml}
`,
    rest,
  )
  const model = scriptedModel(script)
  ctx.llm.registerAdapter(model)
  const { agent: parent } = ctx.agents.create({ cwd: '/', options: { model: 'scripted' } })
  const start = (extra: Partial<SubagentStartRequest> = {}): SubagentRun =>
    ctx.subagents.start('spawn', { prompt: 'go', parent, ...extra })
  const delegate = async (extra?: Partial<SubagentStartRequest>): Promise<SubagentResult> => {
    const run = start(extra)
    try {
      return await run.result
    } finally {
      await run.dispose()
    }
  }
  return { ctx, model, parent, start, delegate }
}

/** The text of an output. */
export function textOf({ output }: Pick<SubagentResult, 'output'>): string {
  return output.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

/** The text of the last user message. */
export function promptOf({ messages }: ModelRequest): string {
  const message = messages.findLast(({ role }) => role === 'user')
  const [block] = message?.content ?? []
  return block?.type === 'text' ? block.text : ''
}

/** Whether the model is asked to go on after tool results. */
export function isAnswered({ messages }: ModelRequest): boolean {
  return messages.at(-1)?.role === 'tool'
}

/** The texts of all tool results that a session holds, in order. */
export function toolResultsOf(session: Session): string[] {
  return [...session.events()].flatMap((event: SessionEvent) =>
    event.type === 'tool/result'
      ? [event.data.content.map((block) => (block.type === 'text' ? block.text : '')).join('')]
      : [],
  )
}

/** Adds a tool that answers with its own name. */
export function registerTool(ctx: Context, name: string, execute?: () => Promise<string>): void {
  ctx.tools.register({
    name,
    description: `does ${name}`,
    parameters: z.object({}),
    execute: execute ?? (async () => `${name} done`),
  })
}

/** A tool through which scripted models delegate; results and refusals come back as text. */
export function registerDelegate(
  ctx: Context,
  extra: (prompt: string) => Partial<SubagentStartRequest> = () => ({}),
): void {
  ctx.tools.register({
    name: 'delegate',
    description: 'delegates',
    parameters: z.object({ prompt: z.string() }),
    parallel: true,
    execute: async ({ prompt }, { agent, callId, signal }) => {
      const parent = ctx.agents.get(agent.id)
      if (parent === undefined) throw new Error('no such agent')
      const request = { prompt, parent, callId, signal, ...extra(prompt) }
      const run = ctx.subagents.start('spawn', request)
      try {
        const result = await run.result
        return `${result.stopReason}: ${textOf(result)}`
      } finally {
        await run.dispose()
      }
    },
  })
}

/** What a child does that calls `delegate` once for each prompt. */
export function delegating(...prompts: string[]): ScriptedReply {
  const calls = prompts.map((prompt, index) => ({
    name: 'delegate',
    callId: `call-${index}`,
    input: { prompt },
  }))
  return { calls }
}
