/** Announces events that are past facts, so that no listener can harm the announcer or another. */
import type { Context, Events } from '@deepseek-ai/cordis'

/** Calls each listener of an event in its own `try`; a rejection is logged like a throw. */
export type Notify = <K extends keyof Events>(name: K, ...args: Parameters<Events[K]>) => void

/**
 * Makes a {@link Notify} for the event bus of `ctx`.
 *
 * It reads the listener table itself: `ctx.emit` lets the first throw escape, and costs
 * microseconds of proxies per event even when nobody listens.
 */
export function createNotify(ctx: Context): Notify {
  const hooks = ctx.root.events._hooks
  return (name, ...args) => {
    const listeners = hooks[name]
    if (listeners === undefined || listeners.length === 0) return
    for (const { callback } of listeners.slice()) {
      try {
        const returned: unknown = callback(...args)
        if (isThenable(returned)) returned.then(undefined, (error) => report(ctx, name, error))
      } catch (error) {
        report(ctx, name, error)
      }
    }
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value
}

function report(ctx: Context, name: string, error: unknown): void {
  ctx.root.logger.error(new Error(`a listener of "${name}" failed`, { cause: error }))
}
