/** The bash seam: one executor of shell commands per context, reached through `ctx.bash`. */
import type { Context } from '@deepseek-ai/cordis'
import { BashError } from './errors.ts'
import type { BashExecutor } from './types.ts'

export * from './errors.ts'
export * from './types.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    bash: BashExecutor
  }
}

/**
 * Makes an executor `ctx.bash` until the calling plugin is disposed.
 * @throws BashError `DUPLICATE_EXECUTOR` when there is one already.
 */
export function provideBash(ctx: Context, executor: BashExecutor): void {
  const other = ctx.get('bash', false)
  if (other !== undefined) {
    throw new BashError(
      'DUPLICATE_EXECUTOR',
      `bash executor "${executor.name}" cannot be loaded: "${other.name}" is already there, and a context has one; remove either entry`,
    )
  }
  ctx.provide('bash', executor)
}
