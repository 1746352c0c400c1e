import type { Context } from '@deepseek-ai/cordis'
import LlmService from '@deepseek-ai/dsh-llm'
import { startModelServer, testContext } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import * as plugin from '../src/index.ts'
import { ask, bootAdapter, collectWarnings, everyProvider, modelNames } from './helpers.ts'

const nowhere = { baseURL: 'http://127.0.0.1:9' }

describe('llm-ai-sdk', () => {
  test('serves its models by the name of the provider', async () => {
    const models = ['a', { name: 'b', images: true }]
    const ctx = await bootAdapter(nowhere, { provider: 'deepseek', models })

    expect(ctx.llm.models()).toEqual([{ name: 'a' }, { name: 'b', images: true }])
    expect(() =>
      ctx.llm.registerAdapter({ name: 'deepseek', models: [], stream: neverStreams }),
    ).toThrow('model adapter "deepseek" is already registered')
  })

  test('takes another name, so that two endpoints of one kind coexist', async () => {
    const server = await startModelServer((request) => request.headers.host ?? '')
    const other = await startModelServer((request) => request.headers.host ?? '')
    const ctx = await bootAdapter(server, { provider: 'openai-compatible', models: ['one'] })
    await ctx.plugin(plugin, {
      provider: 'openai-compatible',
      adapterName: 'second',
      baseURL: other.baseURL,
      models: ['two'],
    })

    const first = await ask(ctx, { model: 'one' })
    const second = await ask(ctx, { model: 'two' })

    expect(first.content).toMatchObject([{ text: server.url.replace('http://', '') }])
    expect(second.content).toMatchObject([{ text: other.url.replace('http://', '') }])
  })

  test('leaves the registry with its plugin', async () => {
    const ctx = testContext()
    await ctx.plugin(LlmService)
    const fiber = await ctx.plugin(plugin, { provider: 'deepseek', models: ['a'] })

    await fiber.dispose()

    expect(ctx.llm.models()).toEqual([])
  })

  test.each(everyProvider.filter((provider) => provider !== 'openai-compatible'))(
    'of %s without a key asks for one, whatever the environment holds',
    async (provider) => {
      const server = await startModelServer([])
      for (const variable of ['DEEPSEEK', 'OPENAI', 'ANTHROPIC', 'GOOGLE_GENERATIVE_AI']) {
        vi.stubEnv(`${variable}_API_KEY`, 'sk-from-the-environment')
      }
      onTestFinished(() => void vi.unstubAllEnvs())
      const ctx = await bootAdapter(server, { provider, apiKey: '' })

      const { error } = await ask(ctx, { model: modelNames[provider] })

      expect(error?.code).toBe('MODEL_AUTH')
      expect(error?.message).toMatch(
        /has no key: set "apiKey" in its config, usually from \w+_API_KEY/,
      )
      expect(server.requests).toEqual([])
    },
  )

  test('of a compatible endpoint needs no key', async () => {
    const server = await startModelServer(['hello'])
    const ctx = await bootAdapter(server, { provider: 'openai-compatible', apiKey: '' })

    const { content } = await ask(ctx, {})

    expect(content).toMatchObject([{ text: 'hello' }])
    expect(server.requests[0]?.headers.authorization).toBeUndefined()
  })

  test('warns once of a setting that the provider cannot honour', async () => {
    const server = await startModelServer(() => 'hello')
    const ctx = await bootAdapter(server, { provider: 'openai' })
    const warnings = collectWarnings(ctx)

    await ask(ctx, { model: modelNames.openai, temperature: 0.5 })
    await ask(ctx, { model: modelNames.openai, temperature: 0.5 })

    expect(warnings).toEqual([
      expect.stringContaining('model adapter "openai" cannot honour "temperature"'),
    ])
  })

  test.each<[string, object, string]>([
    ['an unknown provider', { provider: 'closedai', models: ['a'] }, 'provider'],
    ['no provider', { models: ['a'] }, 'provider'],
    ['no models', { provider: 'deepseek' }, 'models'],
    [
      'an empty list of models',
      { provider: 'deepseek', models: [] },
      'adapter "deepseek" lists no "models"',
    ],
    [
      'a model twice',
      { provider: 'deepseek', models: ['a', { name: 'a' }] },
      'lists model "a" twice',
    ],
    [
      'a model without a name',
      { provider: 'deepseek', models: [''] },
      'lists a model without a name',
    ],
    [
      'a compatible endpoint without a place',
      { provider: 'openai-compatible', models: ['a'] },
      'needs a "baseURL"',
    ],
    [
      'a place that is no URL',
      { provider: 'openai', models: ['a'], baseURL: 'localhost:80' },
      'baseURL',
    ],
    [
      'a place with a password',
      { provider: 'openai', models: ['a'], baseURL: 'http://me:pw@localhost' },
      'baseURL',
    ],
    [
      'a timeout of nothing',
      { provider: 'openai', models: ['a'], idleTimeoutMs: 0 },
      'idleTimeoutMs',
    ],
    ['half a retry', { provider: 'openai', models: ['a'], maxRetries: 0.5 }, 'maxRetries'],
  ])('refuses %s', async (_, config, message) => {
    const ctx = testContext({ expectErrors: /./ })
    await ctx.plugin(LlmService)

    await expect(load(ctx, config)).rejects.toThrow(message)
    expect(ctx.llm.models()).toEqual([])
  })
})

async function load(ctx: Context, config: object): Promise<void> {
  await ctx.plugin(plugin, config as plugin.Config)
}

async function* neverStreams() {
  // Only its name is asked for.
}
