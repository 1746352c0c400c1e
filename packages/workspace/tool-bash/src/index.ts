/** The tool by which a model runs shell commands. */
import type { Context } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { bashTool } from './tool.ts'

export const name = 'tool-bash'
export const inject = ['tools', 'bash']

export interface Config {
  /** What the model calls it. */
  toolName: string
}

export const Config: z<Partial<Config>, Config> = z.object({
  toolName: z.string().default('bash'),
})

export function apply(ctx: Context, { toolName }: Config): void {
  ctx.tools.register(bashTool(toolName, ctx.bash))
}
