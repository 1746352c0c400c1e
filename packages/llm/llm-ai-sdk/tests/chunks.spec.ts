import { type ServedReply, startModelServer } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { ask, bootAdapter, everyProvider, lookTool, modelNames, type Reply } from './helpers.ts'

describe.each(everyProvider)('a reply of %s', (provider) => {
  const model = modelNames[provider]

  async function reply(served: ServedReply): Promise<Reply> {
    const server = await startModelServer([served])
    const ctx = await bootAdapter(server, { provider, maxRetries: 0 })
    return ask(ctx, { model, tools: [lookTool] })
  }

  test('streams its text', async () => {
    const { content, finish } = await reply({ deltas: ['hel', 'lo ', 'wörld 🌍'] })

    expect(content).toEqual([{ type: 'text', text: 'hello wörld 🌍' }])
    expect(finish).toBe('stop')
  })

  test('has its reasoning before its text', async () => {
    const { content } = await reply({ reasoning: 'let me think', text: 'done', signature: 'sig' })

    expect(content).toMatchObject([
      { type: 'reasoning', text: 'let me think' },
      { type: 'text', text: 'done' },
    ])
  })

  test('has every parallel call with its parsed input', async () => {
    const { content, finish } = await reply({
      text: 'looking',
      calls: [
        { name: 'look', input: { at: 'the sky' } },
        { name: 'look', input: { at: 'the sea' }, callId: 'mine' },
        { name: 'look' },
      ],
    })

    expect(content).toMatchObject([
      { type: 'text', text: 'looking' },
      { type: 'tool-call', callId: 'call-0-0', name: 'look', input: { at: 'the sky' } },
      { type: 'tool-call', callId: 'mine', name: 'look', input: { at: 'the sea' } },
      { type: 'tool-call', callId: 'call-0-2', name: 'look', input: {} },
    ])
    expect(finish).toBe('tool-calls')
  })

  test('keeps the raw text of an input that is no JSON', async () => {
    const { content } = await reply({ calls: [{ name: 'look', input: '{"at": sky' }] })

    expect(content).toMatchObject([{ type: 'tool-call', input: '{"at": sky' }])
  })

  test('counts tokens, the cached and the reasoning ones among them', async () => {
    const usage = { inputTokens: 100, outputTokens: 20, cachedInputTokens: 80, reasoningTokens: 15 }

    const told = await reply({ text: 'done', usage })

    expect(told.usage).toEqual(usage)
  })

  test.each([
    ['stop', 'stop'],
    ['max-tokens', 'max-tokens'],
    ['refusal', 'refusal'],
  ] as const)('that ends with %s finishes with %s', async (finish, expected) => {
    const told = await reply({ text: 'so', finish })

    expect(told).toMatchObject({ content: [{ text: 'so' }], finish: expected })
    expect(told.error).toBeUndefined()
  })
})
