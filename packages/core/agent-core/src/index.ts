/** The host core as one plugin: models, sessions, tools, system prompt, agents and their loop. */
import type { Context } from '@deepseek-ai/cordis'
import AgentService from '@deepseek-ai/dsh-agent'
import * as agentLoop from '@deepseek-ai/dsh-agent-loop'
import * as invariants from '@deepseek-ai/dsh-invariants'
import LlmService from '@deepseek-ai/dsh-llm'
import SessionService from '@deepseek-ai/dsh-session'
import SystemPromptService from '@deepseek-ai/dsh-system-prompt'
import ToolService from '@deepseek-ai/dsh-tools'
import z from '@deepseek-ai/schemastery'

export const name = 'agent-core'

export interface Config {
  /** Model of agents that are created without one; absent: the only registered model. */
  model?: string
  /** Steps of one turn, at least 1. */
  maxSteps?: number
  /** The first section of every agent's system prompt; may use `{{model}}` and `{{cwd}}`. */
  persona?: string
  /** How long a cancelled turn waits for tools that clean up, in ms. */
  abortGraceMs?: number
  /** How long disposing an agent waits for tools that ignored the cancel, in ms. */
  stopGraceMs?: number
}

/** Bounds and defaults are those of the packages that the values go to. */
export const Config: z<Config> = z.object({
  model: z.string(),
  maxSteps: z.number(),
  persona: z.string(),
  abortGraceMs: z.number(),
  stopGraceMs: z.number(),
})

export async function apply(ctx: Context, config: Config): Promise<void> {
  const { model, maxSteps, persona, abortGraceMs, stopGraceMs } = config
  // In the order of their needs: a plugin that waits for a service counts as loaded, and what fails
  // in it afterwards would not be this plugin's failure.
  await Promise.all([
    ctx.plugin(LlmService),
    ctx.plugin(SessionService),
    ctx.plugin(ToolService),
    ctx.plugin(SystemPromptService, { persona }),
  ])
  await Promise.all([ctx.plugin(AgentService, { model, maxSteps }), ctx.plugin(invariants)])
  await ctx.plugin(agentLoop, { abortGraceMs, stopGraceMs })
}
