/** What each adapter does with the harness that it is for. */

/** One set-up of a harness: a parent agent, a child agent, and a model that answers at once. */
export interface Peer {
  /**
   * One turn of a parent that starts from nothing: its model calls the child so many times in one
   * message, each call gets the child's text, and the model closes with `done`.
   * @returns the closing text.
   */
  delegate(calls: number): Promise<string>
  /** The same once, in a parent that has that many turns behind it. */
  grow(turns: number): Promise<Grown>
}

/** A long conversation. */
export interface Grown {
  /** The child starts from nothing. @returns the closing text. */
  readonly spawn: () => Promise<string>
  /** The child sees the turns of the parent; absent where it cannot, see `withoutFork`. */
  readonly fork?: () => Promise<string>
}

export interface PeerOptions {
  /** Pieces of a child's answer; with more than one they are streamed, and somebody listens. */
  readonly deltas: number
  /** Called for each piece that reaches the listener. */
  readonly onDelta: () => void
  /** Holds every child's answer. */
  readonly until?: () => Promise<void>
}

export interface Adapter {
  readonly title: string
  /** The package that is measured; absent for what has none. */
  readonly package?: string
  /** Why the harness cannot stream a child's text to a listener; absent when it can. */
  readonly withoutDeltas?: string
  /** Why a child cannot be given what its parent has behind it; absent when it can. */
  readonly withoutFork?: string
  create(options: PeerOptions): Promise<Peer>
}

export const delegateText = (calls: number): string => `delegate ${calls}`
export const childTask = 'do the work'
export const closing = 'done'

/** One turn behind a parent: what the user said, and what the model answered. */
export const pastTurn = { user: 'hello', assistant: closing }

/** So many turns, as messages that `make` builds. */
export function pastOf<Message>(turns: number, make: () => readonly Message[]): Message[] {
  return Array.from({ length: turns }, make).flat()
}

/** What a model has to say to the last text that it is shown. */
export type Answer =
  | { readonly kind: 'calls'; readonly ids: readonly string[] }
  | { readonly kind: 'text'; readonly pieces: readonly string[] }

/** @param last the text of the last message when that is a user's; else it is absent. */
export async function answerTo(
  last: string | undefined,
  { deltas, until }: PeerOptions,
): Promise<Answer> {
  if (last?.startsWith('delegate ') === true) {
    const calls = Number(last.slice('delegate '.length))
    return { kind: 'calls', ids: Array.from({ length: calls }, (_, index) => `call-${index}`) }
  }
  if (last !== childTask) return { kind: 'text', pieces: [closing] }
  await until?.()
  return { kind: 'text', pieces: Array.from({ length: deltas }, () => 'word ') }
}
