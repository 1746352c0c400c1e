/** Subagent backend: drives any agent that speaks the Agent Client Protocol, one process per run. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import type { SubagentProvider } from '@deepseek-ai/dsh-subagent'
import type { Config } from './config.ts'
import { startAcpRun } from './run.ts'

export { Config } from './config.ts'
export * from './errors.ts'
export type { PermissionPolicy } from './permission.ts'

export const name = 'subagent-acp'
export const inject = ['subagents']

export function apply(ctx: Context, config: Config): void {
  const { baseUrl } = ctx
  const folder = baseUrl === undefined ? process.cwd() : fileURLToPath(new URL('.', baseUrl))
  ctx.subagents.registerProvider(createAcpProvider(config, folder))
}

/**
 * Children in processes of their own, which keep no start-time promise: they are not ours.
 * @param folder what a relative `cwd` in the config is relative to.
 */
export function createAcpProvider(config: Config, folder: string): SubagentProvider {
  return {
    name: config.providerName,
    capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
    inheritsParentContext: false,
    start: (request, run) => {
      const cwd = config.cwd === undefined ? request.parent.cwd : resolve(folder, config.cwd)
      return startAcpRun({ config, cwd, request, context: run })
    },
  }
}
