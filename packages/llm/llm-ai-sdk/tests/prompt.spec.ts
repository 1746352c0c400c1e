import type { ImageBlock, JsonObject, Message, ModelRequest, TextBlock } from '@deepseek-ai/dsh-llm'
import { type ReceivedRequest, startModelServer } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import type { Config, ProviderName } from '../src/index.ts'
import {
  ask,
  bootAdapter,
  everyProvider,
  lookTool,
  modelNames,
  resultMessage,
  userMessage,
} from './helpers.ts'

const image = { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' } as const

/** What the server gets for a request. */
async function sent(
  provider: ProviderName,
  request: Partial<ModelRequest>,
  config: Partial<Config> = {},
): Promise<ReceivedRequest> {
  const server = await startModelServer(['ok'])
  const ctx = await bootAdapter(server, { provider, maxRetries: 0, ...config })
  const { finish, error } = await ask(ctx, { model: modelNames[provider], ...request })
  const [received] = server.requests
  if (received === undefined) throw new Error(`${finish}: ${error?.message}`)
  return received
}

describe.each(everyProvider)('a prompt for %s', (provider) => {
  test('names the model, the system text, the tools and the conversation', async () => {
    const messages: Message[] = [
      userMessage('look around'),
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'looking' },
          { type: 'tool-call', callId: 'a', name: 'look', input: { at: 'sky' } },
          { type: 'tool-call', callId: 'b', name: 'look', input: { at: 'sea' } },
        ],
      },
      resultMessage('a', 'blue'),
      resultMessage('b', 'no such sea', true),
      userMessage('well?'),
    ]

    const received = await sent(provider, { system: 'be brief', messages, tools: [lookTool] })

    expect(received).toMatchObject({
      model: modelNames[provider],
      system: 'be brief',
      tools: ['look'],
      messages: [
        { role: 'user', text: 'look around' },
        { role: 'assistant', text: 'looking' },
        { role: 'tool', text: 'blue' },
        { role: 'tool', text: expect.stringContaining('no such sea') },
        { role: 'user', text: 'well?' },
      ],
    })
    const wire = JSON.stringify(received.body)
    expect(wire).toContain('looks at a thing')
    expect(wire.match(/sky/g)).toHaveLength(1)
  })

  test('carries the key and the configured headers', async () => {
    const { headers } = await sent(provider, {}, { headers: { 'x-team': 'harness' } })

    expect(headers['x-team']).toBe('harness')
    expect(Object.values(headers).join(' ')).toContain('sk-very-secret-key')
  })

  test('shows an image of a user', async () => {
    const content = [{ type: 'text' as const, text: 'what is this?' }, image]

    const { body } = await sent(provider, { messages: [{ role: 'user', content }] })

    expect(JSON.stringify(body)).toContain(image.data)
    expect(JSON.stringify(body)).toContain('image/png')
  })

  test('shows an image of a tool result after the results of the step', async () => {
    const messages = lookedAt(image)

    const { body } = await sent(provider, { messages, tools: [lookTool] })

    const wire = JSON.stringify(body)
    expect(wire.match(new RegExp(image.data, 'g'))).toHaveLength(1)
    expect(wire).toContain('(image)')
  })

  test('says that an image is left out for a model that takes none', async () => {
    const messages: Message[] = [...lookedAt(image), { role: 'user', content: [image] }]

    const { body } = await sent(
      provider,
      { messages, tools: [lookTool] },
      { models: [modelNames[provider]] },
    )

    const wire = JSON.stringify(body)
    expect(wire).not.toContain(image.data)
    expect(wire.match(/image omitted/g)).toHaveLength(2)
  })

  test('shows a call whose input was no JSON as an object', async () => {
    const messages: Message[] = [
      userMessage('look'),
      {
        role: 'assistant',
        content: [{ type: 'tool-call', callId: 'a', name: 'look', input: '{"at": sky' }],
      },
      resultMessage('a', 'the arguments are no JSON', true),
    ]

    const { body } = await sent(provider, { messages, tools: [lookTool] })

    expect(JSON.stringify(body)).toContain('invalidArguments')
  })

  test('shows names and ids that APIs refuse in a form that they take, alike in call and result', async () => {
    const names = ['../../x', '', 'x'.repeat(300), 'functions.bash:0', 'functions_bash_0']
    const messages: Message[] = [
      userMessage('go'),
      {
        role: 'assistant',
        content: names.map((name) => ({ type: 'tool-call', callId: name, name, input: {} })),
      },
      ...names.map((name): Message => {
        const content = [{ type: 'text' as const, text: `no tool` }]
        return {
          role: 'tool',
          content: [{ type: 'tool-result', callId: name, name, content, isError: true }],
        }
      }),
    ]

    const { body } = await sent(provider, { messages, tools: [lookTool] })
    const again = await sent(provider, { messages, tools: [lookTool] })

    const counts = new Map<string, number>()
    for (const word of namesAndIds(body)) counts.set(word, (counts.get(word) ?? 0) + 1)
    expect(again.body).toEqual(body)
    for (const word of counts.keys()) expect(word).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
    // Each call has a name and an id of its own, and its result says the id again.
    expect(counts.size).toBe(names.length)
    expect(counts.has('functions_bash_0')).toBe(true)
    for (const count of counts.values()) expect(count).toBeGreaterThanOrEqual(3)
  })

  test('leaves out blank text and messages that have nothing else', async () => {
    const messages: Message[] = [
      userMessage('one'),
      { role: 'assistant', content: [{ type: 'text', text: ' \n' }] },
      userMessage('two'),
    ]

    const received = await sent(provider, { messages })

    const texts = received.messages.map(({ text }) => text).join('')
    expect(texts).toBe('onetwo')
    expect(received.messages.some(({ role }) => role === 'assistant')).toBe(false)
  })

  test('sends a call and its metadata back as they came', async () => {
    const call = { name: 'look', input: { at: 'sky' }, callId: 'a', signature: 'thought-1' }
    const server = await startModelServer([
      { reasoning: 'hm', signature: 'sig-1', text: 'looking', calls: [call] },
      'blue',
    ])
    const ctx = await bootAdapter(server, { provider })
    const model = modelNames[provider]
    const messages: Message[] = [userMessage('look')]
    const { content } = await ask(ctx, { model, messages, tools: [lookTool] })

    messages.push({ role: 'assistant', content }, resultMessage('a', 'blue'))
    await ask(ctx, { model, messages, tools: [lookTool] })

    const wire = JSON.stringify(server.requests[1]?.body)
    const expected = {
      deepseek: '"reasoning_content":"hm"',
      'openai-compatible': '"reasoning_content":"hm"',
      openai: '"encrypted_content":"sig-1"',
      anthropic: '{"type":"thinking","thinking":"hm","signature":"sig-1"}',
      google: '"thoughtSignature":"thought-1"',
    }
    expect(wire).toContain(expected[provider])
  })

  test('holds the limits of the request', async () => {
    const { body } = await sent(provider, { maxOutputTokens: 123 })

    expect(JSON.stringify(body)).toContain(':123')
  })
})

describe('a prompt for anthropic', () => {
  test('marks the system text and the last message to be cached', async () => {
    const messages: Message[] = [
      userMessage('one'),
      { role: 'assistant', content: [{ type: 'text', text: 'two' }] },
      userMessage('three'),
    ]

    const { body } = await sent('anthropic', { messages, tools: [lookTool] })

    const mark = { cache_control: { type: 'ephemeral' } }
    expect(body.system).toMatchObject([mark])
    expect((body.messages as JsonObject[]).map(({ content }) => content)).toEqual([
      [{ type: 'text', text: 'one' }],
      [{ type: 'text', text: 'two' }],
      [{ type: 'text', text: 'three', ...mark }],
    ])
  })

  test('keeps two blocks of reasoning apart, each with its signature', async () => {
    const messages: Message[] = [
      userMessage('think'),
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'a', metadata: { anthropic: { signature: '1' } } },
          { type: 'reasoning', text: '', metadata: { anthropic: { redactedData: '2' } } },
          { type: 'text', text: 'done' },
        ],
      },
      userMessage('go on'),
    ]

    const { body } = await sent('anthropic', { messages })

    expect((body.messages as JsonObject[])[1]?.content).toEqual([
      { type: 'thinking', thinking: 'a', signature: '1' },
      { type: 'redacted_thinking', data: '2' },
      { type: 'text', text: 'done' },
    ])
  })
})

describe('a prompt for an openai-compatible endpoint', () => {
  test('has the images of results in a user message after the last of them', async () => {
    const messages = lookedAt(image)

    const { body } = await sent('openai-compatible', { messages, tools: [lookTool] })

    expect((body.messages as JsonObject[]).slice(-3)).toEqual([
      { role: 'tool', tool_call_id: 'a', content: '(image)' },
      { role: 'tool', tool_call_id: 'b', content: 'wet' },
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${image.data}` } }],
      },
    ])
  })
})

describe('a prompt for google', () => {
  test('holds the results of one step in one message, as the API demands', async () => {
    const messages = lookedAt({ type: 'text', text: 'blue' })

    const { body } = await sent('google', { messages, tools: [lookTool] })

    expect((body.contents as JsonObject[]).map(({ parts }) => parts)).toEqual([
      [{ text: 'look' }],
      [expect.objectContaining({ functionCall: expect.anything() }), expect.anything()],
      [
        { functionResponse: expect.objectContaining({ id: 'a' }) },
        { functionResponse: expect.objectContaining({ id: 'b' }) },
      ],
    ])
  })
})

describe('a prompt for openai', () => {
  test('keeps nothing on the server and names the session as cache key', async () => {
    const { body } = await sent('openai', { sessionId: 'session-7' })

    expect(body).toMatchObject({
      store: false,
      prompt_cache_key: 'session-7',
      include: ['reasoning.encrypted_content'],
    })
  })
})

describe('the reasoning effort', () => {
  test.each([
    ['deepseek', '"reasoning_effort":"high"'],
    ['openai-compatible', '"reasoning_effort":"high"'],
    ['openai', '"reasoning":{"effort":"high","summary":"auto"}'],
    ['anthropic', '"thinking":{"type":"enabled"'],
    ['google', '"thinkingConfig":{"thinkingLevel":"high","includeThoughts":true}'],
  ] as const)('is told to %s, and its text asked for', async (provider, expected) => {
    const { body } = await sent(provider, {}, { reasoningEffort: 'high' })

    expect(JSON.stringify(body)).toContain(expected)
  })

  test.each(everyProvider)('is left to %s when absent', async (provider) => {
    const { body } = await sent(provider, {})

    expect(JSON.stringify(body)).not.toMatch(/effort|thinking/)
  })
})

/** Every name of a call and every call id, wherever an API wants them. */
function namesAndIds(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]: [string, unknown]) => {
    if (key === 'tools' || typeof item === 'object') return key === 'tools' ? [] : namesAndIds(item)
    const isName = /^(name|id|call_id|tool_call_id|tool_use_id)$/.test(key)
    return isName && typeof item === 'string' ? [item] : []
  })
}

/** A conversation in which two tools were called; the first answered with `block`. */
function lookedAt(block: TextBlock | ImageBlock): Message[] {
  const content = [block]
  return [
    userMessage('look'),
    {
      role: 'assistant',
      content: [
        { type: 'tool-call', callId: 'a', name: 'look', input: { at: 'sky' } },
        { type: 'tool-call', callId: 'b', name: 'look', input: { at: 'sea' } },
      ],
    },
    {
      role: 'tool',
      content: [{ type: 'tool-result', callId: 'a', name: 'look', content, isError: false }],
    },
    resultMessage('b', 'wet'),
  ]
}
