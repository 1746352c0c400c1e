import type { FinishReason, JsonValue, StreamChunk } from '@deepseek-ai/dsh-llm'
import type { TurnEnd } from '@deepseek-ai/dsh-session'
import { describe, expect, test } from 'vitest'
import { createAdapter, createHost, createTool, storyOf, streamOf } from './helpers.ts'

const usage = { inputTokens: 3, outputTokens: 4, cachedInputTokens: 2, reasoningTokens: 1 }

/** The message that is logged for a stream of chunks, and how its turn ended. */
async function logged(chunks: readonly StreamChunk[]): Promise<{ data: unknown; end: TurnEnd }> {
  const { ctx, createAgent } = await createHost([])
  ctx.tools.register(createTool('work', undefined, { execute: async () => ends }))
  ctx.llm.registerAdapter(createAdapter(() => streamOf(chunks)))
  const agent = createAgent({ options: { model: 'custom' } })
  const end = await agent.send('go')
  const message = [...agent.session.events()].find(({ type }) => type === 'assistant/message')
  return { data: message?.data, end }
}

const ends = { content: [], isError: false, endsTurn: true }

const call = (callId: string): Extract<StreamChunk, { type: 'tool-call' }> => ({
  type: 'tool-call',
  callId,
  name: 'work',
  input: {},
})

function nested(depth: number): JsonValue {
  return Array.from({ length: depth }).reduce<JsonValue>((inner) => ({ a: inner }), 1)
}

function fail(): never {
  throw new Error('not to be called')
}

describe('ask', () => {
  test('joins deltas to blocks, in the order in which they came', async () => {
    const { data } = await logged([
      { type: 'reasoning-delta', text: 'think ' },
      { type: 'reasoning-delta', text: 'hard', metadata: { signature: 's' } },
      { type: 'text-delta', text: 'he' },
      { type: 'text-delta', text: 'llo' },
      { ...call('a'), metadata: { thought: 't' } },
      { type: 'text-delta', text: 'and' },
      { type: 'reasoning-delta', text: 'again' },
      { type: 'usage', usage },
      { type: 'finish', reason: 'tool-calls' },
    ])

    expect(data).toEqual({
      content: [
        { type: 'reasoning', text: 'think hard', metadata: { signature: 's' } },
        { type: 'text', text: 'hello' },
        { type: 'tool-call', callId: 'a', name: 'work', input: {}, metadata: { thought: 't' } },
        { type: 'text', text: 'and' },
        { type: 'reasoning', text: 'again' },
      ],
      model: 'custom',
      usage,
      finish: 'tool-calls',
    })
  })

  test('keeps reasoning without text that has something to send back', async () => {
    const { data } = await logged([
      { type: 'reasoning-delta', text: '', metadata: { redacted: 'x' } },
      { type: 'text-delta', text: '' },
      { type: 'text-delta', text: 'hello' },
      { type: 'finish', reason: 'stop' },
    ])

    expect(data).toMatchObject({
      content: [
        { type: 'reasoning', text: '', metadata: { redacted: 'x' } },
        { type: 'text', text: 'hello' },
      ],
    })
  })

  test('leaves out blocks without content, and counts no tokens that nobody told', async () => {
    const { data, end } = await logged([
      { type: 'reasoning-delta', text: '' },
      { type: 'text-delta', text: '' },
      { type: 'finish', reason: 'stop' },
    ])

    expect(data).toEqual({
      content: [],
      model: 'custom',
      usage: { inputTokens: 0, outputTokens: 0 },
      finish: 'stop',
    })
    expect(end).toEqual({ reason: 'completed' })
  })

  test.each([
    ['repeats', ['x', 'x', 'x'], ['x', 'x-2', 'x-3']],
    ['omits', ['', ''], ['call', 'call-2']],
    ['repeats and takes the next free one', ['x', 'x', 'x-2'], ['x', 'x-2', 'x-2-2']],
  ])('gives each call an id of its own when the model %s them', async (_, given, unique) => {
    const { data } = await logged([...given.map(call), { type: 'finish', reason: 'tool-calls' }])

    const { content } = data as { content: { callId: string }[] }
    expect(content.map(({ callId }) => callId)).toEqual(unique)
  })

  test.each<[FinishReason, TurnEnd]>([
    ['stop', { reason: 'completed' }],
    ['max-tokens', { reason: 'max-tokens' }],
    ['refusal', { reason: 'refusal' }],
    ['aborted', { reason: 'aborted' }],
    ['error', { reason: 'error' }],
  ])(
    'ends the turn after a reply without calls that finished with %s',
    async (reason, expected) => {
      const { end } = await logged([{ type: 'finish', reason }])

      expect(end).toEqual(expected)
    },
  )

  test('hands the failure of the model on to the end of the turn, and keeps the text', async () => {
    const error = { code: 'MODEL_RATE_LIMIT', message: 'too many requests' }

    const { data, end } = await logged([
      { type: 'text-delta', text: 'half a sen' },
      { type: 'finish', reason: 'error', error },
    ])

    expect(data).toMatchObject({ content: [{ text: 'half a sen' }], finish: 'error' })
    expect(end).toEqual({ reason: 'error', error })
  })

  test('ends with an error when the adapter throws in the middle', async () => {
    const { ctx, createAgent } = await createHost([])
    ctx.llm.registerAdapter(
      createAdapter(async function* () {
        yield { type: 'text-delta', text: 'half' }
        throw new Error('connection reset')
      }),
    )
    const agent = createAgent({ options: { model: 'custom' } })

    const end = await agent.send('go')

    expect(end).toEqual({
      reason: 'error',
      error: { code: 'MODEL_FAILED', message: 'connection reset' },
    })
    expect(storyOf(agent)).toContain('model: half (error)')
  })

  test.each<[string, unknown, string]>([
    ['nested too deep', nested(150), JSON.stringify(nested(150))],
    ['with a number that overflows', JSON.parse('{"n":1e999}'), '{"n":"Infinity"}'],
    ['nested too deep for JSON.stringify', nested(100_000), '{ a: { a: [Object] } }'],
    ['that JSON does not know', 7n, '7n'],
  ])('keeps the message of a call with an input %s, as the text of it', async (_, input, text) => {
    const { data, end } = await logged([
      { type: 'text-delta', text: 'precious' },
      { ...call('a'), input: input as JsonValue },
      call('b'),
      { type: 'usage', usage },
      { type: 'finish', reason: 'tool-calls' },
    ])

    expect(data).toEqual({
      content: [
        { type: 'text', text: 'precious' },
        { type: 'tool-call', callId: 'a', name: 'work', input: text },
        { type: 'tool-call', callId: 'b', name: 'work', input: {} },
      ],
      model: 'custom',
      usage,
      finish: 'tool-calls',
    })
    expect(end).toEqual({ reason: 'completed' })
  })

  test('keeps the message whatever the depth of an input', async () => {
    const depths = Array.from({ length: 20 }, (_, index) => 90 + index)
    const { data } = await logged([
      ...depths.map((depth) => ({ ...call(`${depth}`), input: nested(depth) })),
      { type: 'finish', reason: 'tool-calls' },
    ])

    const { content } = data as { content: { input: JsonValue }[] }
    const kinds = content.map(({ input }) => typeof input)
    expect(kinds).toEqual(depths.map((depth) => (depth <= 97 ? 'object' : 'string')))
  })

  test('tells the model what was wrong with an input that no log can hold', async () => {
    const { ctx, model, createAgent } = await createHost([
      { calls: [{ name: 'work', input: nested(150) }] },
      'I see',
    ])
    ctx.tools.register(createTool('work'))

    const end = await createAgent().send('go')

    expect(end).toEqual({ reason: 'completed' })
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: [{ isError: true, content: [{ text: expect.stringContaining('JSON object') }] }],
    })
  })

  test('leaves out of metadata and usage what no log can hold', async () => {
    const metadata = { api: { signature: 's', score: Number.NaN }, other: () => 1 }
    const { data, end } = await logged([
      { type: 'reasoning-delta', text: 'hm', metadata: metadata as never },
      { ...call('a'), metadata: metadata as never },
      { ...call('b'), metadata: 'odd' as never },
      {
        type: 'usage',
        usage: { inputTokens: Number.NaN, outputTokens: 4, reasoningTokens: Infinity },
      },
      { type: 'finish', reason: 'tool-calls' },
    ])

    const kept = { api: { signature: 's' } }
    expect(data).toEqual({
      content: [
        { type: 'reasoning', text: 'hm', metadata: kept },
        { type: 'tool-call', callId: 'a', name: 'work', input: {}, metadata: kept },
        { type: 'tool-call', callId: 'b', name: 'work', input: {} },
      ],
      model: 'custom',
      usage: { inputTokens: 0, outputTokens: 4 },
      finish: 'tool-calls',
    })
    expect(end).toEqual({ reason: 'completed' })
  })

  test.each<[string, object, object]>([
    [
      'call has neither name, id nor input',
      { type: 'tool-call' },
      { content: [{ callId: 'call', name: '', input: {} }] },
    ],
    [
      'call has an id and a name that are no texts',
      { ...call('a'), callId: fail, name: fail },
      { content: [{ callId: 'call', name: '' }] },
    ],
    ['usage is nothing', { type: 'usage' }, { usage: { inputTokens: 0, outputTokens: 0 } }],
    [
      'counts are none',
      { type: 'usage', usage: { inputTokens: -5, outputTokens: 1.5, reasoningTokens: 2 ** 60 } },
      { usage: { inputTokens: 0, outputTokens: 0 } },
    ],
    ['kind is unknown', { type: 'novelty' }, { content: [] }],
  ])('logs a message with a chunk whose %s', async (_, chunk, expected) => {
    const { data } = await logged([chunk as StreamChunk, { type: 'finish', reason: 'tool-calls' }])

    expect(data).toMatchObject(expected)
  })

  test('ends with an error that names a reason to finish that is unknown', async () => {
    const { data, end } = await logged([
      { type: 'text-delta', text: 'kept' },
      { type: 'finish', reason: 'length' as never },
    ])

    expect(data).toMatchObject({ content: [{ text: 'kept' }], finish: 'error' })
    expect(end).toMatchObject({
      reason: 'error',
      error: { code: 'MODEL_FAILED', message: expect.stringContaining('"length"') },
    })
  })

  test('announces deltas as they come, and logs none', async () => {
    const { ctx, createAgent } = await createHost([{ reasoning: 'hm', deltas: ['he', 'llo'] }])
    const heard: string[] = []
    ctx.on('agent/delta', ({ agent: { id }, kind, text }) => {
      heard.push(`${id === agent.id ? 'mine' : 'other'} ${kind} ${text}`)
    })
    const agent = createAgent()

    await agent.send('hello')

    expect(heard).toEqual(['mine reasoning hm', 'mine text he', 'mine text llo'])
  })

  test('streams to the end though a listener throws', async () => {
    const { ctx, createAgent } = await createHost([{ deltas: ['a', 'b'] }], {
      expectErrors: /listener/,
    })
    ctx.on('agent/delta', () => {
      throw new Error('a broken listener')
    })
    const agent = createAgent()

    const end = await agent.send('hello')

    expect(end).toEqual({ reason: 'completed' })
    expect(storyOf(agent)).toContain('model: ab (stop)')
  })
})
