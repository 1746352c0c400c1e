/** A model adapter that answers each session as it was answered when the fixture was recorded. */
import type { ModelAdapter, ModelRequest, StreamChunk } from '@deepseek-ai/dsh-llm'
import type { Session, SessionId } from '@deepseek-ai/dsh-session'
import { ReplayError } from './errors.ts'
import type { Fixture, RecordedReply } from './fixture.ts'
import { SessionKeys } from './keys.ts'

/** Replays a fixture; every session has its own place in it. */
export class Replayer {
  readonly adapter: ModelAdapter
  private readonly fixture: Fixture
  private readonly path: string
  private readonly keys = new SessionKeys()
  private readonly places = new Map<string, number>()

  constructor(adapterName: string, fixture: Fixture, path: string) {
    this.fixture = fixture
    this.path = path
    const models = new Set(
      Object.values(fixture.sessions).flatMap((replies) => replies.map(({ model }) => model)),
    )
    this.adapter = {
      name: adapterName,
      models: Array.from(models, (name) => ({ name })),
      stream: (request) => this.stream(request),
    }
  }

  onCreated(session: Session): void {
    this.places.set(this.keys.name(session), 0)
  }

  /** One line for each session that asked less often than it did when it was recorded. */
  unused(): string[] {
    return Object.entries(this.fixture.sessions).flatMap(([key, replies]) => {
      const place = this.places.get(key) ?? 0
      const left = replies.length - place
      return left > 0 ? [`"${key}" asked for ${place} of ${replies.length} recorded replies`] : []
    })
  }

  private async *stream({ sessionId, signal }: ModelRequest): AsyncGenerator<StreamChunk> {
    const reply = this.next(sessionId as SessionId)
    for (const block of reply.content) {
      if (block.type === 'tool-call') yield block
      else if (block.type === 'text') yield { type: 'text-delta', text: block.text }
      else {
        const { text, metadata } = block
        yield { type: 'reasoning-delta', text, ...(metadata !== undefined && { metadata }) }
      }
    }
    yield { type: 'usage', usage: reply.usage }
    if (reply.finish === 'aborted') await abortOf(signal)
    const { finish: reason, error } = reply
    yield { type: 'finish', reason, ...(error !== undefined && { error }) }
  }

  /** @throws ReplayError `REPLAY_MISSING`, `REPLAY_EXHAUSTED`. */
  private next(id: SessionId): RecordedReply {
    const key = this.keys.get(id)
    const replies = key === undefined ? undefined : this.fixture.sessions[key]
    if (key === undefined || replies === undefined) {
      const known = Object.keys(this.fixture.sessions).join(', ') || 'none'
      throw new ReplayError(
        'REPLAY_MISSING',
        `"${this.path}" has no session "${key ?? id}" (recorded: ${known})`,
      )
    }
    const place = this.places.get(key) ?? 0
    const reply = replies[place]
    if (reply === undefined) {
      throw new ReplayError(
        'REPLAY_EXHAUSTED',
        `"${this.path}": session "${key}" asks for reply ${place + 1}, recorded are ${replies.length}`,
      )
    }
    this.places.set(key, place + 1)
    return reply
  }
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
