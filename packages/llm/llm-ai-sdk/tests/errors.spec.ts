import type { Failure } from '@deepseek-ai/dsh-llm'
import { type ServedFault, startModelServer } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import type { Config, ProviderName } from '../src/index.ts'
import { diagnose } from '../src/errors.ts'
import { apiKey, ask, bootAdapter, everyProvider, modelNames } from './helpers.ts'

type StatusFault = Extract<ServedFault, { status: number }>

/** How a request fails on which the server answers with `fault`. */
async function failure(
  provider: ProviderName,
  fault: StatusFault,
  config: Partial<Config> = {},
): Promise<Failure> {
  const server = await startModelServer(() => ({ fault }))
  const ctx = await bootAdapter(server, { provider, maxRetries: 0, ...config })
  const { error } = await ask(ctx, { model: modelNames[provider] })
  if (error === undefined) throw new Error('it did not fail')
  return error
}

describe('the code of a failure', () => {
  test.each([
    [400, 'MODEL_REQUEST'],
    [401, 'MODEL_AUTH'],
    [402, 'MODEL_AUTH'],
    [403, 'MODEL_AUTH'],
    [404, 'MODEL_REQUEST'],
    [408, 'MODEL_UNAVAILABLE'],
    [413, 'CONTEXT_OVERFLOW'],
    [422, 'MODEL_REQUEST'],
    [429, 'MODEL_RATE_LIMIT'],
    [500, 'MODEL_UNAVAILABLE'],
    [502, 'MODEL_UNAVAILABLE'],
    [529, 'MODEL_UNAVAILABLE'],
  ])('for status %d is %s', async (status, code) => {
    const error = await failure('openai-compatible', { status, message: 'No.' })

    expect(error.code).toBe(code)
    expect(error.message).toContain(`model "local-model" (${status}): No`)
  })

  test.each<[ProviderName, string]>([
    ['deepseek', "This model's maximum context length is 131072 tokens."],
    ['openai-compatible', 'the request exceeds the available context size (4096 tokens)'],
    ['openai', 'Your input exceeds the context window of this model.'],
    ['anthropic', 'prompt is too long: 208310 tokens > 200000 maximum'],
    ['google', 'The input token count (1200000) exceeds the maximum number of tokens allowed.'],
  ])('for what %s says of a full context is CONTEXT_OVERFLOW', async (provider, message) => {
    const error = await failure(provider, { status: 400, message })

    expect(error.code).toBe('CONTEXT_OVERFLOW')
    expect(error.message).toContain(message.slice(0, -1))
  })

  test.each([
    [{ code: 429 }, 'MODEL_RATE_LIMIT'],
    [{ type: 'rate_limit_exceeded' }, 'MODEL_RATE_LIMIT'],
    [{ code: 'overloaded' }, 'MODEL_UNAVAILABLE'],
    [{ type: 'authentication_error' }, 'MODEL_AUTH'],
    [{ code: 'context_length_exceeded' }, 'CONTEXT_OVERFLOW'],
    [{ type: 'invalid_request_error' }, 'MODEL_REQUEST'],
    [{}, 'MODEL_FAILED'],
    [{ name: 'AI_UnsupportedFunctionalityError' }, 'MODEL_REQUEST'],
  ])('for %j inside a stream is %s', (told, code) => {
    const scene = { adapterName: 'a', model: 'm', baseURL: 'u', keyVariable: 'K', scrub: String }

    const { error } = diagnose({ message: 'no', ...told }, scene)

    expect(error.code).toBe(code)
  })
})

describe('the text of a failure', () => {
  test.each([
    ['deepseek', 'DEEPSEEK_API_KEY'],
    ['openai-compatible', 'OPENAI_API_KEY'],
    ['openai', 'OPENAI_API_KEY'],
    ['anthropic', 'ANTHROPIC_API_KEY'],
    ['google', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  ] as const)('of a refused key of %s says what to check', async (provider, variable) => {
    const error = await failure(provider, { status: 401, message: 'Invalid key.' })

    expect(error).toEqual({
      code: 'MODEL_AUTH',
      message: `model adapter "${provider}" was denied access to model "${modelNames[provider]}" (401): Invalid key; check "apiKey" (usually from ${variable}) and the account`,
    })
  })

  test('of an unknown model names it', async () => {
    const error = await failure('deepseek', { status: 404, message: 'Model Not Exist' })

    expect(error.message).toBe(
      'model adapter "deepseek" was refused by model "deepseek-v4-pro" (404): Model Not Exist; check "baseURL" and "models"',
    )
  })

  test('of a server that cannot be reached names it', async () => {
    const server = await startModelServer([])
    await server.close()
    const ctx = await bootAdapter(server, { provider: 'anthropic', maxRetries: 0 })

    const { error } = await ask(ctx, { model: modelNames.anthropic })

    expect(error?.code).toBe('MODEL_UNAVAILABLE')
    expect(error?.message).toContain(`lost the connection to ${server.baseURL} for model`)
    expect(error?.message).toContain('ECONNREFUSED')
  })

  test('shows the body where the server tells no error in the usual form', async () => {
    const error = await failure('openai-compatible', {
      status: 422,
      body: { detail: 'no tools here' },
    })

    expect(error.message).toContain('(422): {"detail":"no tools here"}')
  })

  test.each(everyProvider)(
    'of %s holds neither the key nor a configured header',
    async (provider) => {
      const token = 'tok-12345678'
      const message = `your key ${apiKey} and your token ${token} are wrong`
      const headers = { 'x-proxy-auth': `Bearer ${token}` }

      const told = await failure(provider, { status: 401, message }, { headers })
      const raw = await failure(provider, { status: 418, body: message }, { headers })

      for (const text of [told.message, raw.message]) {
        expect(text).toContain('your key *** and your token *** are wrong')
      }
    },
  )

  test('is short, and not cut inside a secret or a character', async () => {
    const head = 'x'.repeat(390)

    const key = await failure('deepseek', { status: 400, message: `${head}${apiKey} ${head}` })
    const emoji = await failure('deepseek', { status: 400, body: `${head}${'🌍'.repeat(500)}` })

    expect(key.message).not.toContain('sk-very')
    expect(emoji.message.isWellFormed()).toBe(true)
    expect(Math.max(key.message.length, emoji.message.length)).toBeLessThan(500)
  })

  test('of a chunk that is no JSON is scrubbed and short', async () => {
    const server = await startModelServer([{ text: 'a', fault: { kind: 'malformed' } }])
    const ctx = await bootAdapter(server, { provider: 'google' })

    const { error } = await ask(ctx, { model: modelNames.google })

    expect(error?.code).toBe('MODEL_FAILED')
    expect(error?.message).toContain('failed for model "gemini-3-pro-preview": JSON parsing failed')
  })
})
