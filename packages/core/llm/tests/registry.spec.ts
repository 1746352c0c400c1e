import { describe, expect, test } from 'vitest'
import { LlmError, type ModelAdapter, ModelRegistry } from '../src/index.ts'
import { collect, createAdapter, createRequest } from './helpers.ts'

function registryWith(...adapters: ModelAdapter[]): ModelRegistry {
  const registry = new ModelRegistry()
  for (const adapter of adapters) registry.add(adapter)
  return registry
}

describe('ModelRegistry', () => {
  test('lists the models of all adapters in the order of registration', () => {
    const registry = registryWith(
      createAdapter({ name: 'b', models: [{ name: 'b1' }, { name: 'b2', images: true }] }),
      createAdapter({ name: 'a', models: [{ name: 'a1' }] }),
    )

    expect(registry.list()).toEqual([{ name: 'b1' }, { name: 'b2', images: true }, { name: 'a1' }])
    expect(registry.get('b2')).toEqual({ name: 'b2', images: true })
    expect(registry.require('a1')).toEqual({ name: 'a1' })
  })

  test('refuses a second adapter with the same name, and keeps the first', () => {
    const registry = registryWith(createAdapter())

    const add = (): void => registry.add(createAdapter({ models: [{ name: 'other' }] }))

    expect(add).toThrow(
      new LlmError('DUPLICATE_ADAPTER', 'model adapter "adapter" is already registered'),
    )
    expect(registry.list()).toEqual([{ name: 'model' }])
  })

  test('refuses a model that another adapter serves, and adds nothing of its adapter', () => {
    const registry = registryWith(createAdapter({ name: 'first' }))
    const second = createAdapter({ name: 'second', models: [{ name: 'new' }, { name: 'model' }] })

    expect(() => registry.add(second)).toThrow(
      new LlmError(
        'DUPLICATE_MODEL',
        'model "model" of adapter "second" is already served by adapter "first"',
      ),
    )
    expect(registry.list()).toEqual([{ name: 'model' }])
    expect(() => registry.add({ ...second, models: [{ name: 'new' }] })).not.toThrow()
  })

  test('takes an adapter of the same name again after the first was removed', () => {
    const first = createAdapter()
    const registry = registryWith(first)

    registry.remove(first)
    registry.add(createAdapter())

    expect(registry.list()).toEqual([{ name: 'model' }])
  })

  test('names the known models when one is unknown', () => {
    const registry = registryWith(createAdapter({ models: [{ name: 'a' }, { name: 'b' }] }))

    expect(() => registry.require('c')).toThrow(
      new LlmError('UNKNOWN_MODEL', 'no model "c" (registered: a, b)'),
    )
    expect(() => new ModelRegistry().require('c')).toThrow('no model "c" (registered: none)')
  })
})

describe('ModelRegistry.stream', () => {
  test('passes the chunks of the adapter on, up to its finish', async () => {
    const registry = registryWith(
      createAdapter({
        async *stream() {
          yield { type: 'text-delta', text: 'hello' }
          yield { type: 'finish', reason: 'stop' }
          yield { type: 'text-delta', text: 'too late' }
          yield { type: 'finish', reason: 'error' }
        },
      }),
    )

    const chunks = await collect(registry.stream(createRequest()))

    expect(chunks).toEqual([
      { type: 'text-delta', text: 'hello' },
      { type: 'finish', reason: 'stop' },
    ])
  })

  test('finishes with an error when no adapter serves the model', async () => {
    const chunks = await collect(registryWith().stream(createRequest({ model: 'gone' })))

    expect(chunks).toEqual([
      {
        type: 'finish',
        reason: 'error',
        error: { code: 'UNKNOWN_MODEL', message: 'no model "gone" (registered: none)' },
      },
    ])
  })

  test.each([
    ['its own code', new LlmError('MODEL_AUTH', 'bad key'), 'MODEL_AUTH', 'bad key'],
    ['the general code', new Error('boom'), 'MODEL_FAILED', 'boom'],
  ])('makes a throw of the adapter its finish, with %s', async (_, thrown, code, message) => {
    const registry = registryWith(
      createAdapter({
        async *stream() {
          yield { type: 'text-delta', text: 'half a sen' }
          throw thrown
        },
      }),
    )

    const chunks = await collect(registry.stream(createRequest()))

    expect(chunks).toEqual([
      { type: 'text-delta', text: 'half a sen' },
      { type: 'finish', reason: 'error', error: { code, message } },
    ])
  })

  test('makes a throw before the stream exists its finish', async () => {
    const registry = registryWith(
      createAdapter({
        stream() {
          throw new Error('not even a stream')
        },
      }),
    )

    const chunks = await collect(registry.stream(createRequest()))

    expect(chunks).toMatchObject([{ type: 'finish', error: { message: 'not even a stream' } }])
  })

  test('finishes with an error when the adapter ends without a finish', async () => {
    const registry = registryWith(
      createAdapter({
        async *stream() {
          yield { type: 'text-delta', text: 'and then' }
        },
      }),
    )

    const chunks = await collect(registry.stream(createRequest()))

    expect(chunks.at(-1)).toEqual({
      type: 'finish',
      reason: 'error',
      error: {
        code: 'MODEL_FAILED',
        message: 'model adapter "adapter" ended its stream without a finish',
      },
    })
  })

  test('finishes as aborted when the adapter throws after the abort', async () => {
    const controller = new AbortController()
    const registry = registryWith(
      createAdapter({
        async *stream({ signal }) {
          yield { type: 'text-delta', text: 'one' }
          signal.throwIfAborted()
        },
      }),
    )
    const stream = registry.stream(createRequest({ signal: controller.signal }))
    await stream.next()

    controller.abort()
    const rest = await collect(stream)

    expect(rest).toEqual([{ type: 'finish', reason: 'aborted' }])
  })

  test('does not call the adapter when the signal is aborted already', async () => {
    let calls = 0
    const registry = registryWith(
      createAdapter({
        async *stream() {
          calls += 1
          yield { type: 'finish', reason: 'stop' }
        },
      }),
    )

    const chunks = await collect(
      registry.stream(createRequest({ signal: AbortSignal.abort('no') })),
    )

    expect(chunks).toEqual([{ type: 'finish', reason: 'aborted' }])
    expect(calls).toBe(0)
  })

  test('finishes once when the adapter fails while it cleans up', async () => {
    const registry = registryWith(
      createAdapter({
        async *stream() {
          try {
            yield { type: 'finish', reason: 'stop' }
          } finally {
            await Promise.reject(new Error('the connection does not close'))
          }
        },
      }),
    )

    const chunks = await collect(registry.stream(createRequest()))

    expect(chunks).toEqual([{ type: 'finish', reason: 'stop' }])
  })

  test('closes the stream of the adapter when the reader leaves', async () => {
    let isClosed = false
    const registry = registryWith(
      createAdapter({
        async *stream() {
          try {
            yield { type: 'text-delta', text: 'one' }
            yield { type: 'finish', reason: 'stop' }
          } finally {
            isClosed = true
          }
        },
      }),
    )

    for await (const _ of registry.stream(createRequest())) break

    expect(isClosed).toBe(true)
  })
})
