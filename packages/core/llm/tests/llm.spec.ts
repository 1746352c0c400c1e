import type { Context } from '@deepseek-ai/cordis'
import { bootYml, testContext } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import * as llm from '../src/index.ts'
import LlmService, { LlmError } from '../src/index.ts'
import { collect, createAdapter, createRequest } from './helpers.ts'

describe('LlmService', () => {
  test('streams through an adapter that a plugin of the yml registered', async () => {
    const ctx = await bootYml(
      `
- name: ./adapter.js
- name: '@deepseek-ai/dsh-llm'
`,
      {
        files: {
          'adapter.js': `
            export const name = 'adapter'
            export const inject = ['llm']
            export function apply(ctx) {
              ctx.llm.registerAdapter({
                name: 'echo',
                models: [{ name: 'echo-1' }],
                async *stream({ system }) {
                  yield { type: 'text-delta', text: system }
                  yield { type: 'finish', reason: 'stop' }
                },
              })
            }`,
        },
      },
    )

    const chunks = await collect(
      ctx.llm.stream(createRequest({ model: 'echo-1', system: 'be brief' })),
    )

    expect(ctx.llm.models()).toEqual([{ name: 'echo-1' }])
    expect(chunks).toEqual([
      { type: 'text-delta', text: 'be brief' },
      { type: 'finish', reason: 'stop' },
    ])
  })

  test('is what the Loader takes from the module', async () => {
    const ctx = await bootYml('[]')

    expect(ctx.loader.unwrapExports(llm)).toBe(LlmService)
  })

  test('forgets an adapter when the plugin that registered it is disposed', async () => {
    const ctx = testContext()
    await ctx.plugin(LlmService)
    const fiber = await ctx.inject(['llm'], (child: Context) => {
      child.llm.registerAdapter(createAdapter())
    })

    await fiber.dispose()

    expect(ctx.llm.models()).toEqual([])
    expect(() => ctx.llm.registerAdapter(createAdapter())).not.toThrow()
  })

  test('forgets an adapter early by the disposer, which may be called twice', async () => {
    const ctx = testContext()
    await ctx.plugin(LlmService)
    const dispose = ctx.llm.registerAdapter(createAdapter())

    await dispose()
    ctx.llm.registerAdapter(createAdapter())
    await dispose()

    expect(ctx.llm.models()).toEqual([{ name: 'model' }])
  })

  test('leaves nothing behind of a registration that it refused', async () => {
    const ctx = testContext()
    await ctx.plugin(LlmService)
    const dispose = ctx.llm.registerAdapter(createAdapter())
    expect(() => ctx.llm.registerAdapter(createAdapter())).toThrow(LlmError)

    await dispose()

    expect(ctx.llm.models()).toEqual([])
  })

  test('keeps one adapter over twenty reloads of its plugin', async () => {
    const ctx = testContext()
    await ctx.plugin(LlmService)
    const fiber = await ctx.inject(['llm'], (child: Context) => {
      child.llm.registerAdapter(createAdapter())
    })

    for (let reload = 0; reload < 20; reload += 1) await fiber.restart()

    expect(ctx.llm.models()).toEqual([{ name: 'model' }])
  })
})
