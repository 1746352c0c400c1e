import { type ServedReply, startModelServer } from '@deepseek-ai/dsh-testkit'
import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { StreamChunk } from '@deepseek-ai/dsh-llm'
import { describe, expect, test } from 'vitest'
import { ReplyReader } from '../src/chunks.ts'
import {
  ask,
  bootAdapter,
  everyProvider,
  lookTool,
  modelNames,
  type Reply,
  replyOf,
} from './helpers.ts'

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

describe('ReplyReader', () => {
  test('tells the metadata of a reasoning block at its end, as one', () => {
    const chunks = read(
      {
        type: 'reasoning-start',
        id: 'r',
        providerMetadata: { openai: { itemId: 'i', key: null } },
      },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r', providerMetadata: { openai: { key: 'sealed' } } },
    )

    expect(chunks).toEqual([
      { type: 'reasoning-delta', text: 'hm' },
      { type: 'reasoning-delta', text: '', metadata: { openai: { itemId: 'i', key: 'sealed' } } },
    ])
  })

  test('parts two reasoning blocks that follow each other', () => {
    const { content } = replyOf(
      read(
        { type: 'reasoning-start', id: '0' },
        { type: 'reasoning-delta', id: '0', delta: 'one' },
        { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: signed('a') },
        { type: 'reasoning-end', id: '0' },
        { type: 'reasoning-start', id: '1', providerMetadata: signed('b') },
        { type: 'reasoning-end', id: '1' },
      ),
    )

    expect(content).toEqual([
      { type: 'reasoning', text: 'one', metadata: signed('a') },
      { type: 'reasoning', text: '', metadata: signed('b') },
    ])
  })

  test('calls a reply with calls one that waits for results, whatever the server says', () => {
    const call = { type: 'tool-call', toolCallId: 'a', toolName: 'look', input: '' } as const

    const chunks = read(call, finished('stop'))

    expect(chunks).toEqual([
      { type: 'tool-call', callId: 'a', name: 'look', input: {} },
      { type: 'finish', reason: 'tool-calls' },
    ])
  })

  test('fails on a reason that it does not know, naming it', () => {
    expect(() => read(finished('other', 'MALFORMED_FUNCTION_CALL'))).toThrow(
      'model adapter "mine" got a reply that ended with "MALFORMED_FUNCTION_CALL"',
    )
  })

  test.each(['interrupted', 'other', 'error'] as const)(
    'fails on a stream that was %s',
    (unified) => {
      expect(() => read(finished(unified))).toThrow('lost its stream before the model had finished')
    },
  )

  test('ignores parts that the seam has no chunks for', () => {
    expect(read({ type: 'raw', rawValue: 1 }, { type: 'text-start', id: 't' })).toEqual([])
  })
})

function read(...parts: LanguageModelV4StreamPart[]): StreamChunk[] {
  const reader = new ReplyReader('mine')
  return parts.flatMap((part) => [...reader.read(part)])
}

function finished(unified: LanguageModelV4FinishReason['unified'], raw?: string) {
  const inputTokens = {
    total: undefined,
    noCache: undefined,
    cacheRead: undefined,
    cacheWrite: undefined,
  }
  const outputTokens = { total: undefined, text: undefined, reasoning: undefined }
  return {
    type: 'finish',
    finishReason: { unified, raw },
    usage: { inputTokens, outputTokens },
  } as const
}

function signed(signature: string) {
  return { anthropic: { signature } }
}
