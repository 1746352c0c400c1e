/** Checks every live session log as it grows, and logs an error for each violation. */
import type { Context } from '@deepseek-ai/cordis'
import type { Session } from '@deepseek-ai/dsh-session'
import { LogChecker } from './check.ts'

export * from './check.ts'

export const name = 'invariants'
export const inject = ['sessions']

export function apply(ctx: Context): void {
  const checkers = new WeakMap<Session, LogChecker>()
  const { logger } = ctx

  const begin = (session: Session): void => {
    const from = session.header.seedLength ?? 0
    const checker = new LogChecker(from)
    for (const event of session.events(from)) checker.check(event)
    checkers.set(session, checker)
  }

  for (const session of ctx.sessions.list()) begin(session)
  ctx.on('session/created', ({ session }) => begin(session))
  ctx.on('session/event', ({ session, event }) => {
    const problem = checkers.get(session)?.check(event)
    if (problem === undefined) return
    logger.error(`session "${session.id}", ${event.type} at seq ${event.seq}: ${problem}`)
  })
}
