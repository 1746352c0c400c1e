/** What the specs of this package share. */
import type { ModelAdapter, ModelRequest, StreamChunk } from '../src/index.ts'

export function createAdapter(overrides: Partial<ModelAdapter> = {}): ModelAdapter {
  return {
    name: 'adapter',
    models: [{ name: 'model' }],
    async *stream() {
      yield { type: 'text-delta', text: 'hello' }
      yield { type: 'finish', reason: 'stop' }
    },
    ...overrides,
  }
}

export function createRequest(overrides: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'model',
    system: '',
    messages: [],
    tools: [],
    signal: new AbortController().signal,
    sessionId: 'session',
    ...overrides,
  }
}

export async function collect(stream: AsyncIterable<StreamChunk>): Promise<StreamChunk[]> {
  const chunks: StreamChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}
