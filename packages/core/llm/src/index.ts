/** The model seam: named model adapters, reached through `ctx.llm`. */
import { type Context, Service } from '@deepseek-ai/cordis'
import { ModelRegistry } from './registry.ts'
import type { ModelAdapter, ModelInfo, ModelRequest, StreamChunk } from './types.ts'

export * from './errors.ts'
export * from './notify.ts'
export * from './registry.ts'
export * from './types.ts'
export * from './usage.ts'
export * from './within.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    llm: LlmService
  }
}

/** Registry of {@link ModelAdapter}s. */
export class LlmService extends Service {
  /** The plain registry, for hot paths: each read through `ctx.llm` passes a proxy. */
  readonly registry = new ModelRegistry()

  constructor(ctx: Context) {
    super(ctx, 'llm')
  }

  /**
   * Adds an adapter until the calling plugin is disposed.
   * @returns a disposer that removes it early; calling it twice is harmless.
   * @throws LlmError `DUPLICATE_ADAPTER`, `DUPLICATE_MODEL`.
   */
  registerAdapter(adapter: ModelAdapter): () => Promise<void> {
    const { registry } = this
    return this.ctx.effect(() => {
      registry.add(adapter)
      return () => registry.remove(adapter)
    }, `llm.registerAdapter(${adapter.name})`)
  }

  /** The models of all adapters, in the order of registration. */
  models(): ModelInfo[] {
    return this.registry.list()
  }

  /** Streams one reply. Never throws: the last chunk is the only finish, whatever went wrong. */
  stream(request: ModelRequest): AsyncGenerator<StreamChunk, void, void> {
    return this.registry.stream(request)
  }
}

export default LlmService
