/** A tool that gives back what it is given. */
import type { Context } from '@deepseek-ai/cordis'
import type { Tool } from '@deepseek-ai/dsh-tools'
import { z } from 'zod'

export const name = 'echo-tool'
export const inject = ['tools']

const parameters = z.object({ text: z.string().describe('what to give back') })

const echo: Tool<typeof parameters> = {
  name: 'echo',
  description: 'Gives back the text that it is given.',
  parameters,
  execute: async ({ text }) => text,
}

/** Registers the tool until the plugin is unloaded. */
export function apply(ctx: Context): void {
  ctx.tools.register(echo)
}
