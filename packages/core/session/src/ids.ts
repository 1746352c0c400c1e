/** Random ids. */
import { randomUUID } from 'node:crypto'

/** A new UUID that takes no more room than its characters. */
export function randomId(): string {
  // Node joins a UUID from pieces and V8 keeps them all; a change of case makes one string of them.
  return randomUUID().toLowerCase()
}
