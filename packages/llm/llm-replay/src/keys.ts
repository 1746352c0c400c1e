/** Names sessions by lineage, so that a name means the same session in every run. */
import type { Session, SessionId } from '@deepseek-ai/dsh-session'

/**
 * Gives each session its key: `root` without a live parent, and for a child its parent's key and the
 * id of the tool call that asked for it. The call's id is the model's own word, so it stands in the
 * recording. What would have the same key is numbered in the order of creation: `root#2`.
 */
export class SessionKeys {
  private readonly keys = new Map<SessionId, string>()
  private readonly counts = new Map<string, number>()

  /** @param session one that was not named before, its parent first. */
  name({ header }: Session): string {
    const { id, parentSession, origin } = header
    const parent = parentSession === undefined ? undefined : this.keys.get(parentSession)
    const base = parent === undefined ? 'root' : `${parent}/${partOf(origin?.callId)}`
    const count = (this.counts.get(base) ?? 0) + 1
    this.counts.set(base, count)
    const key = count === 1 ? base : `${base}#${count}`
    this.keys.set(id, key)
    return key
  }

  get(id: SessionId): string | undefined {
    return this.keys.get(id)
  }
}

/** Without the characters that mean something in a key, so that two keys are never the same. */
function partOf(callId = 'child'): string {
  return callId.replace(/[%/#]/g, encodeURIComponent)
}
