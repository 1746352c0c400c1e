/** The fork backend on real agents, with a scripted model. */
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { Message, ModelRequest } from '@deepseek-ai/dsh-llm'
import type { SubagentRun, SubagentStartRequest } from '@deepseek-ai/dsh-subagent'
import { type Answer, bootYml, type ScriptedModel, scriptedModel } from '@deepseek-ai/dsh-testkit'
import { z } from 'zod'

export interface Bench {
  readonly ctx: Context
  readonly model: ScriptedModel
  /** A top-level agent. */
  readonly parent: Agent
  readonly fork: (request?: Partial<SubagentStartRequest>) => SubagentRun
}

/** Boots host core, seam and backend from yml; the model answers `re: <prompt>` unless told. */
export async function createBench(
  answer: Answer = (request) => `re: ${promptOf(request)}`,
  config: object = {},
): Promise<Bench> {
  const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-subagent-fork'
  config: ${JSON.stringify(config)}
`)
  const model = scriptedModel(answer)
  ctx.llm.registerAdapter(model)
  const { agent: parent } = ctx.agents.create({ cwd: '/' })
  const fork = (request: Partial<SubagentStartRequest> = {}): SubagentRun =>
    ctx.subagents.start('fork', { prompt: 'go', parent, ...request })
  return { ctx, model, parent, fork }
}

/** The agent that works for a run. */
export function childOf(ctx: Context, { id }: SubagentRun): Agent {
  const child = ctx.agents.get(id)
  if (child === undefined) throw new Error('there is no child')
  return child
}

/** The text of the last user message. */
export function promptOf({ messages }: ModelRequest): string {
  const message = messages.findLast(({ role }) => role === 'user')
  return message === undefined ? '' : textOf(message)
}

/** A message as `role: text`, its calls as `call name`. */
export function lineOf(message: Message): string {
  return `${message.role}: ${textOf(message)}`
}

function textOf({ content }: Message): string {
  const parts = content.map((block) => {
    if (block.type === 'text') return block.text
    return block.type === 'tool-call' ? `call ${block.name}` : block.type
  })
  return parts.join(' | ')
}

/** A tool through which scripted models delegate. */
export function registerDelegate(ctx: Context): void {
  ctx.tools.register({
    name: 'delegate',
    description: 'delegates',
    parameters: z.object({ prompt: z.string() }),
    parallel: true,
    execute: async ({ prompt }, { agent, callId, signal }) => {
      const parent = ctx.agents.get(agent.id)
      if (parent === undefined) throw new Error('no such agent')
      const run = ctx.subagents.start('fork', { prompt, parent, callId, signal })
      try {
        const { output } = await run.result
        return output.map((block) => (block.type === 'text' ? block.text : '')).join('')
      } finally {
        await run.dispose()
      }
    },
  })
}
