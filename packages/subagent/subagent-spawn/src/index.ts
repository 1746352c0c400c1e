/** Subagent backend: a fresh child agent in this process, without any inherited conversation. */
import type { Context } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { createInProcessProvider, inProcessServices } from './provider.ts'

export { depthOf } from '@deepseek-ai/dsh-subagent'
export * from './driver.ts'
export * from './provider.ts'

export const name = 'subagent-spawn'
export const inject = ['subagents', 'agents', 'tools']

export interface Config {
  /** Name on `ctx.subagents`. */
  providerName: string
}

export const Config: z<Partial<Config>, Config> = z.object({
  providerName: z.string().default('spawn'),
})

export function apply(ctx: Context, { providerName }: Config): void {
  ctx.subagents.registerProvider(createInProcessProvider(providerName, inProcessServices(ctx)))
}
