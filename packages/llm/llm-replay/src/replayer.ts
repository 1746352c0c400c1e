/** A model adapter that answers each session as it was answered when the fixture was recorded. */
import type { ModelAdapter, ModelRequest, StreamChunk } from '@deepseek-ai/dsh-llm'
import type { Session, SessionId } from '@deepseek-ai/dsh-session'
import { ReplayError, type ReplayErrorCode } from './errors.ts'
import type { Fixture, RecordedReply } from './fixture.ts'
import { isFromElsewhere, SessionKeys, topOf } from './keys.ts'

export interface ReplayerOptions {
  readonly adapterName: string
  /** The path of the fixture, for messages. */
  readonly path: string
  readonly fixture: Fixture
  /** Told of each way in which the run is another one than the recorded one. */
  readonly tell: (error: ReplayError) => void
}

/** Replays a fixture; every session has its own place in it. */
export class Replayer {
  readonly adapter: ModelAdapter
  private readonly options: ReplayerOptions
  private readonly keys = new SessionKeys()
  private readonly places = new Map<string, number>()

  constructor(options: ReplayerOptions) {
    this.options = options
    const replies = Object.values(options.fixture.sessions).flat()
    const models = new Set(replies.map(({ model }) => model))
    this.adapter = {
      name: options.adapterName,
      models: Array.from(models, (name) => ({ name })),
      stream: (request) => this.stream(request),
    }
  }

  onCreated(session: Session): void {
    this.keys.name(session)
  }

  /** Tells the sessions that asked less often than when they were recorded. */
  tellUnused(): void {
    // What came of a parent elsewhere, and never came here, is another process's to replay.
    this.failUnused((top) => !isFromElsewhere(top) || this.places.has(top))
  }

  private async *stream({ sessionId, signal }: ModelRequest): AsyncGenerator<StreamChunk> {
    const key = this.keys.get(sessionId as SessionId) ?? sessionId
    const reply = this.next(key)
    // Its parent takes one answer, and hears of nothing after it.
    if (isFromElsewhere(key) && endsTurn(reply)) {
      const error = this.failUnused((top) => top === key)
      if (error !== undefined) throw error
    }
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
  private next(key: string): RecordedReply {
    const { fixture, path } = this.options
    const replies = Object.hasOwn(fixture.sessions, key) ? fixture.sessions[key] : undefined
    if (replies === undefined) {
      const known = Object.keys(fixture.sessions).join(', ') || 'none'
      throw this.fail('REPLAY_MISSING', `"${path}" has no session "${key}" (recorded: ${known})`)
    }
    const place = this.places.get(key) ?? 0
    const reply = replies[place]
    if (reply === undefined) {
      const message = `"${path}": session "${key}" asks for reply ${place + 1}, recorded are ${replies.length}`
      throw this.fail('REPLAY_EXHAUSTED', message)
    }
    this.places.set(key, place + 1)
    return reply
  }

  /** Tells what was recorded and not asked for, of the sessions at or below those of interest. */
  private failUnused(isOfInterest: (top: string) => boolean): ReplayError | undefined {
    const { fixture, path } = this.options
    const unused = Object.entries(fixture.sessions).flatMap(([key, replies]) => {
      const place = this.places.get(key) ?? 0
      if (!isOfInterest(topOf(key)) || replies.slice(place).every(isSilent)) return []
      return [`session "${key}" asked for ${place} of ${replies.length} recorded replies`]
    })
    if (unused.length === 0) return undefined
    return this.fail('REPLAY_UNUSED', `"${path}": ${unused.join('; ')}`)
  }

  private fail(code: ReplayErrorCode, message: string): ReplayError {
    const error = new ReplayError(code, message)
    this.options.tell(error)
    return error
  }
}

/** A cancel may come before the model is asked or right after: nobody can tell the two apart. */
function isSilent({ content, finish }: RecordedReply): boolean {
  return finish === 'aborted' && content.length === 0
}

function endsTurn({ finish }: RecordedReply): boolean {
  return finish === 'stop' || finish === 'max-tokens' || finish === 'refusal'
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
