/** Names sessions by lineage, so that a name means the same session in every run. */
import type { Session, SessionId } from '@deepseek-ai/dsh-session'

/**
 * Gives each session its key: `root` for the first without a live parent, then `root-2` and so on;
 * for a child its parent's key and the id of the tool call that asked for it. The call's id is the
 * model's own word, so it stands in the recording; a child that no call asked for is numbered.
 */
export class SessionKeys {
  private readonly keys = new Map<SessionId, string>()
  private readonly counts = new Map<string, number>()

  /** @param session one that was not named before, its parent first. */
  name(session: Session): string {
    const { id, parentSession, origin } = session.header
    const parent = parentSession === undefined ? undefined : this.keys.get(parentSession)
    const base = parent === undefined ? 'root' : `${parent}/${origin?.callId ?? 'child'}`
    const count = (this.counts.get(base) ?? 0) + 1
    this.counts.set(base, count)
    const key = count === 1 ? base : `${base}-${count}`
    this.keys.set(id, key)
    return key
  }

  get(id: SessionId): string | undefined {
    return this.keys.get(id)
  }
}
