/** One agent's append-only log, and the folds over it that the harness needs at every step. */
import { addUsage, type Message, noUsage, type Usage } from '@deepseek-ai/dsh-llm'
import { freezeJson } from './freeze.ts'
import { messageOfEvent } from './messages.ts'
import type {
  SessionEvent,
  SessionEventData,
  SessionEventType,
  SessionHeader,
  SessionId,
  TurnEnd,
} from './types.ts'

/** Called after an event was committed. */
export type AppendListener = (session: Session, event: SessionEvent) => void

/** The first `length` events of a session, shared by reference with whoever is seeded by them. */
export interface SessionPrefix {
  readonly session: Session
  readonly length: number
}

/** An append-only log of frozen events; a seed is shared with the parent, never copied. */
export class Session {
  readonly header: SessionHeader
  private readonly seed: SessionPrefix | undefined
  private readonly seedLength: number
  private readonly own: SessionEvent[]
  private readonly onAppend: AppendListener
  private readonly derived: Message[] = []
  private derivedLength = 0
  private ownUsage: Usage = noUsage
  private completed: number
  private turns = 0
  private lastEnd: TurnEnd | undefined

  /** @param own events that the session already has, for one that is resumed. */
  constructor(
    header: SessionHeader,
    onAppend: AppendListener,
    seed?: SessionPrefix,
    own: readonly SessionEvent[] = [],
  ) {
    this.header = header
    this.onAppend = onAppend
    this.seed = seed
    this.seedLength = seed?.length ?? 0
    this.completed = this.seedLength
    this.own = [...own]
    for (const event of own) this.evolve(event)
  }

  get id(): SessionId {
    return this.header.id
  }

  get length(): number {
    return this.seedLength + this.own.length
  }

  /** The length of the log up to and including its last `turn/end`; 0 when there is none. */
  get completedLength(): number {
    return this.completed
  }

  /** How many turns the session itself started. */
  get turnCount(): number {
    return this.turns
  }

  /** How the session's own last turn ended; absent while none has. */
  get lastTurnEnd(): TurnEnd | undefined {
    return this.lastEnd
  }

  /** Tokens of the session's own steps: neither its seed's nor its children's. */
  get usage(): Usage {
    return this.ownUsage
  }

  at(seq: number): SessionEvent | undefined {
    return seq < this.seedLength ? this.seed?.session.at(seq) : this.own[seq - this.seedLength]
  }

  /** The events from `from` on, the seed's among them; `session.events(session.header.seedLength)` are its own. */
  *events(from = 0): Generator<SessionEvent, void, void> {
    for (let seq = from; seq < this.length; seq += 1) yield this.at(seq) as SessionEvent
  }

  /** The finished turns, to seed a fork with; absent when there is none. */
  completedTurns(): SessionPrefix | undefined {
    return this.completed === 0 ? undefined : { session: this, length: this.completed }
  }

  /**
   * Adds a fact: the only way a log changes. Listeners hear of it after it is committed.
   * @throws SessionError `NOT_JSON`; nothing is added then.
   */
  append<T extends SessionEventType>(type: T, data: SessionEventData[T]): SessionEvent<T> {
    const event = Object.freeze({
      seq: this.length,
      time: Date.now(),
      type,
      data: freezeJson(data),
    }) as SessionEvent<T>
    this.own.push(event as SessionEvent)
    this.evolve(event as SessionEvent)
    this.onAppend(this, event as SessionEvent)
    return event
  }

  /**
   * The conversation so far. Work is linear in the events since the last call; the array is the
   * session's own and grows, so a caller that keeps it must copy it.
   */
  deriveMessages(): readonly Message[] {
    for (; this.derivedLength < this.length; this.derivedLength += 1) {
      const message = messageOfEvent(this.at(this.derivedLength) as SessionEvent)
      if (message !== undefined) this.derived.push(message)
    }
    return this.derived
  }

  private evolve(event: SessionEvent): void {
    if (event.type === 'turn/start') this.turns += 1
    else if (event.type === 'assistant/message') {
      this.ownUsage = addUsage(this.ownUsage, event.data.usage)
    } else if (event.type === 'turn/end') {
      this.completed = event.seq + 1
      this.lastEnd = event.data
    }
  }
}
