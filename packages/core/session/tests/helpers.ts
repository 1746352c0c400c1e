/** What the specs of this package share. */
import type { JsonObject } from '@deepseek-ai/dsh-llm'
import {
  Session,
  type SessionEvent,
  type SessionHeader,
  type SessionId,
  type SessionPrefix,
  type SessionStore,
  type StoredSession,
} from '../src/index.ts'

export function createHeader(overrides: Partial<SessionHeader> = {}): SessionHeader {
  return { id: 'one' as SessionId, createdAt: 0, cwd: '/', delegationDepth: 0, ...overrides }
}

export function createSession(seed?: SessionPrefix): Session {
  return new Session(createHeader(), () => {}, seed)
}

const usage = { inputTokens: 10, outputTokens: 5 }

/** Appends a whole turn: a question and its answer, or only what comes before the end. */
export function appendTurn(session: Session, text: string, isOpen = false): void {
  session.append('turn/start', { turn: session.turnCount + 1, model: 'model' })
  session.append('user/message', { content: [{ type: 'text', text }] })
  session.append('step/start', { step: 1 })
  const content = [{ type: 'text' as const, text: `re: ${text}` }]
  session.append('assistant/message', { content, model: 'model', usage, finish: 'stop' })
  session.append('step/end', { step: 1 })
  if (!isOpen) session.append('turn/end', { reason: 'completed' })
}

/** Appends the beginning of a turn up to a message that calls a tool once per id. */
export function appendCalls(session: Session, callIds: readonly string[], step = 1): void {
  if (step === 1) session.append('turn/start', { turn: session.turnCount + 1, model: 'model' })
  session.append('step/start', { step })
  const content = callIds.map((callId) => ({
    type: 'tool-call' as const,
    callId,
    name: 'work',
    input: { callId },
  }))
  session.append('assistant/message', { content, model: 'model', usage, finish: 'tool-calls' })
}

export function appendCall(session: Session, callId: string): void {
  session.append('tool/call', { callId, name: 'work', input: { callId } })
}

export function appendResult(session: Session, callId: string): void {
  const content = [{ type: 'text' as const, text: 'done' }]
  session.append('tool/result', { callId, name: 'work', content, isError: false })
}

export interface FakeStore extends SessionStore {
  /** What was asked of the store, in order. */
  readonly log: string[]
  readonly stored: Map<string, StoredSession>
}

/** A store that notes what is asked of it; `stored` is what it can load. */
export function createStore(overrides: Partial<SessionStore> = {}): FakeStore {
  const log: string[] = []
  const stored = new Map<string, StoredSession>()
  return {
    log,
    stored,
    open: ({ id, length }) => void log.push(`open ${id} at ${length}`),
    append: ({ id }, { seq, type }) => void log.push(`append ${id} ${seq} ${type}`),
    flush: async ({ id }) => void log.push(`flush ${id}`),
    close: async ({ id }) => void log.push(`close ${id}`),
    load: async (id) => {
      const session = stored.get(id)
      if (session === undefined) throw new Error(`nothing is stored for "${id}"`)
      return session
    },
    ...overrides,
  }
}

export function typesOf(events: Iterable<SessionEvent>): string[] {
  return Array.from(events, ({ type }) => type)
}

/** An object that refers to itself through `self`. */
export function createCycle(): JsonObject {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  return cycle as JsonObject
}
