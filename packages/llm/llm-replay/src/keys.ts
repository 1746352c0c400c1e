/** Names sessions by lineage, so that a name means the same session in every run. */
import type { Session, SessionHeader, SessionId } from '@deepseek-ai/dsh-session'

/**
 * Gives each session its key: `root` without a parent, and for a child its parent's key and the id
 * of the tool call that asked for it. The call's id is the model's own word, so it stands in the
 * recording. A parent in another process has the key `parent` here. What would have the same key is
 * numbered in the order of creation: `root#2`.
 */
export class SessionKeys {
  private readonly keys = new Map<SessionId, string>()
  private readonly counts = new Map<string, number>()

  /** @param session one that was not named before, its parent first. */
  name({ header }: Session): string {
    const { id } = header
    const base = this.baseOf(header)
    const count = (this.counts.get(base) ?? 0) + 1
    this.counts.set(base, count)
    const key = count === 1 ? base : `${base}#${count}`
    this.keys.set(id, key)
    return key
  }

  get(id: SessionId): string | undefined {
    return this.keys.get(id)
  }

  private baseOf({ parentSession, origin }: SessionHeader): string {
    const parent = parentSession === undefined ? undefined : this.keys.get(parentSession)
    if (parent !== undefined) return `${parent}/${partOf(origin?.callId)}`
    return origin?.callId === undefined ? 'root' : `parent/${partOf(origin.callId)}`
  }
}

/** The topmost session above the session of a key, or itself. */
export function topOf(key: string): string {
  const length = key.startsWith('parent/') ? 2 : 1
  return key.split('/').slice(0, length).join('/')
}

/** Whether a session answers one call of a parent in another process. */
export function isFromElsewhere(key: string): boolean {
  return key.startsWith('parent/') && topOf(key) === key
}

/** Without the characters that mean something in a key, so that two keys are never the same. */
function partOf(callId = 'child'): string {
  return callId.replace(/[%/#]/g, encodeURIComponent)
}
