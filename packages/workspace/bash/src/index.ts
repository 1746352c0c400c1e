/** The bash seam: one executor of shell commands per context, reached through `ctx.bash`. */
import type { Context } from '@deepseek-ai/cordis'
import { BashError } from './errors.ts'
import type { BashExecutor, BashResult, TimedBashRequest } from './types.ts'

export * from './errors.ts'
export * from './types.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    bash: BashExecutor
  }

  interface Events {
    /**
     * Wraps every command that is about to run: a listener may run it elsewhere instead of calling
     * `next()`, and then keeps all promises of {@link BashExecutor}.
     * @mode waterfall
     */
    'bash/execute'(request: TimedBashRequest, next: () => Promise<BashResult>): Promise<BashResult>
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
  ctx.provide('bash', wrapped(ctx.root, executor))
}

function wrapped(root: Context, executor: BashExecutor): BashExecutor {
  const { name, timeoutMs, maxTimeoutMs } = executor
  return {
    name,
    timeoutMs,
    maxTimeoutMs,
    execute: async (request) => {
      const timed = { ...request, timeoutMs: request.timeoutMs ?? timeoutMs }
      requireTimeout(timed.timeoutMs, maxTimeoutMs)
      return root.waterfall('bash/execute', timed, () => executor.execute(timed))
    },
  }
}

/** Whoever runs a command elsewhere need not look at its limit. */
function requireTimeout(timeoutMs: number, maxTimeoutMs: number): void {
  if (timeoutMs > 0 && timeoutMs <= maxTimeoutMs) return
  throw new BashError(
    'INVALID_TIMEOUT',
    `timeoutMs must be above 0 and at most ${maxTimeoutMs}, not "${timeoutMs}"`,
  )
}
