/** Bash executor that runs commands on this machine. */
import type { Context } from '@deepseek-ai/cordis'
import { provideBash } from '@deepseek-ai/dsh-bash'
import { LocalBash } from './local-bash.ts'
import type { Config } from './config.ts'

export { Config } from './config.ts'

export const name = 'bash-local'

export function apply(ctx: Context, config: Config): void {
  const { logger } = ctx
  const executor = new LocalBash(config, (message) => logger.warn(message))
  ctx.effect(() => () => executor.dispose(), 'bash-local.dispose()')
  provideBash(ctx, executor)
}
