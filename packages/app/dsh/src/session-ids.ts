/** Which session is meant by the beginning of its id. */
import type { Context } from '@deepseek-ai/cordis'
import { AppError } from '@deepseek-ai/dsh-app'
import { isHarnessError } from '@deepseek-ai/dsh-llm'
import type { SessionId } from '@deepseek-ai/dsh-session'

/** As many as a person looks through. */
const maxListed = 10

/**
 * Finds the one that begins so; absent when none does, or when it is whole already.
 * @throws AppError `USAGE` when several do.
 */
export function beginningWith(beginning: string, ids: readonly SessionId[]): SessionId | undefined {
  if (ids.some((id) => id === beginning)) return undefined
  const found = ids.filter((id) => id.startsWith(beginning)).toSorted()
  if (found.length <= 1) return found[0]
  const more = found.length > maxListed ? [`and ${found.length - maxListed} more`] : []
  const lines = [...found.slice(0, maxListed), ...more].map((line) => `  ${line}`)
  throw new AppError(
    'USAGE',
    `"${beginning}" begins several sessions, write more of the id:\n${lines.join('\n')}`,
  )
}

/** The stored session that was meant when no session has that id. @throws as {@link beginningWith}. */
export async function storedMeant(
  error: unknown,
  ctx: Context,
  beginning: SessionId | undefined,
): Promise<SessionId | undefined> {
  const table = ctx.get('sessions')?.table
  if (beginning === undefined || !isUnknownSession(error) || table?.canListStored !== true) {
    return undefined
  }
  const stored = await table.listStored()
  return beginningWith(
    beginning,
    stored.map(({ header }) => header.id),
  )
}

export function isUnknownSession(error: unknown): boolean {
  return isHarnessError(error) && error.code === 'UNKNOWN_SESSION'
}

/** `no session "…" in "…"`, with where to look them up. */
export function unknownSession(message: string): string {
  const [, folder] = / in "(.*)"$/.exec(message) ?? []
  const list = folder === undefined ? 'dsh sessions' : `dsh sessions --root ${folder}`
  return `${message}: "${list}" lists those that are there`
}
