/** The models of a context, as a plain object that hot paths may hold. */
import { failureOf, LlmError } from './errors.ts'
import type { ModelAdapter, ModelInfo, ModelRequest, StreamChunk } from './types.ts'

interface Served {
  readonly adapter: ModelAdapter
  readonly info: ModelInfo
}

/** Model adapters by name, and the models that they serve. */
export class ModelRegistry {
  private readonly adapters = new Map<string, ModelAdapter>()
  private readonly served = new Map<string, Served>()

  /** @throws LlmError `DUPLICATE_ADAPTER`, `DUPLICATE_MODEL`; nothing is added then. */
  add(adapter: ModelAdapter): void {
    if (this.adapters.has(adapter.name)) {
      throw new LlmError(
        'DUPLICATE_ADAPTER',
        `model adapter "${adapter.name}" is already registered`,
      )
    }
    for (const { name } of adapter.models) {
      const other = this.served.get(name)?.adapter.name
      if (other === undefined) continue
      throw new LlmError(
        'DUPLICATE_MODEL',
        `model "${name}" of adapter "${adapter.name}" is already served by adapter "${other}"`,
      )
    }
    this.adapters.set(adapter.name, adapter)
    for (const info of adapter.models) this.served.set(info.name, { adapter, info })
  }

  remove(adapter: ModelAdapter): void {
    this.adapters.delete(adapter.name)
    for (const { name } of adapter.models) this.served.delete(name)
  }

  list(): ModelInfo[] {
    return Array.from(this.served.values(), ({ info }) => info)
  }

  get(model: string): ModelInfo | undefined {
    return this.served.get(model)?.info
  }

  /** @throws LlmError `UNKNOWN_MODEL`, naming the known ones. */
  require(model: string): ModelInfo {
    const info = this.get(model)
    if (info === undefined) throw unknownModel(model, this.list())
    return info
  }

  /** Streams one reply. Never throws: the last chunk is the only finish, whatever went wrong. */
  async *stream(request: ModelRequest): AsyncGenerator<StreamChunk, void, void> {
    let isFinished = false
    try {
      request.signal.throwIfAborted()
      const served = this.served.get(request.model)
      if (served === undefined) throw unknownModel(request.model, this.list())
      for await (const chunk of served.adapter.stream(request)) {
        isFinished = chunk.type === 'finish'
        yield chunk
        if (isFinished) return
      }
      const name = served.adapter.name
      throw new LlmError(
        'MODEL_FAILED',
        `model adapter "${name}" ended its stream without a finish`,
      )
    } catch (error) {
      // The reply is complete: an adapter that fails while it cleans up changes nothing.
      if (isFinished) return
      if (request.signal.aborted) yield { type: 'finish', reason: 'aborted' }
      else yield { type: 'finish', reason: 'error', error: failureOf(error, 'MODEL_FAILED') }
    }
  }
}

function unknownModel(model: string, known: readonly ModelInfo[]): LlmError {
  const names = known.map(({ name }) => name).join(', ')
  return new LlmError('UNKNOWN_MODEL', `no model "${model}" (registered: ${names || 'none'})`)
}
