import type { Context } from '@deepseek-ai/cordis'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { assistant, bootConfig, bootRules, chunksOf, user } from './helpers.ts'

const calls = `
- reply:
    reasoning: let me see
    text: I look
    calls: [{ name: read, input: { path: a } }, { name: list }]
    usage: { inputTokens: 7, outputTokens: 3, cachedInputTokens: 2 }
`

type Agent = ReturnType<Context['agents']['create']>['agent']

describe('stream', () => {
  test('gives reasoning, text, calls and usage before its finish', async () => {
    const ctx = await bootRules(calls)

    expect(await chunksOf(ctx)).toEqual([
      { type: 'reasoning-delta', text: 'let me see' },
      { type: 'text-delta', text: 'I look' },
      { type: 'tool-call', callId: 'call-1-1', name: 'read', input: { path: 'a' } },
      { type: 'tool-call', callId: 'call-1-2', name: 'list', input: {} },
      {
        type: 'usage',
        usage: { inputTokens: 7, outputTokens: 3, cachedInputTokens: 2 },
      },
      { type: 'finish', reason: 'tool-calls' },
    ])
  })

  test('gives no two calls of a conversation the same id', async () => {
    const ctx = await bootRules(calls)

    const first = await chunksOf(ctx, { messages: [user('a')] })
    const second = await chunksOf(ctx, { messages: [user('a'), assistant('b'), user('c')] })

    const ids = [...first, ...second].flatMap((chunk) =>
      chunk.type === 'tool-call' ? chunk.callId : [],
    )
    expect(new Set(ids).size).toBe(4)
  })

  test.each([
    ['{ text: a }', { reason: 'stop' }],
    ['{ text: a, finish: max-tokens }', { reason: 'max-tokens' }],
    ['{ finish: refusal }', { reason: 'refusal' }],
    [
      "{ text: a, error: { code: MODEL_RATE_LIMIT, message: 'no {{user}}' } }",
      { reason: 'error', error: { code: 'MODEL_RATE_LIMIT', message: 'no hello' } },
    ],
  ])('finishes %s as told', async (reply, finish) => {
    const ctx = await bootRules(`- reply: ${reply}`)

    expect((await chunksOf(ctx)).at(-1)).toEqual({ type: 'finish', ...finish })
  })

  test('streams in chunks that never cut a character', async () => {
    const ctx = await bootRules(
      '- reply: { reasoning: abc, text: "1\u{1F600}2\u{1F600}3", chunkSize: 2 }',
    )

    const pieces = (await chunksOf(ctx)).map((chunk) => ('text' in chunk ? chunk.text : chunk.type))

    expect(pieces).toEqual(['ab', 'c', '1\u{1F600}', '2\u{1F600}', '3', 'finish'])
  })

  test('takes chunks and delays from the config where the reply does not tell', async () => {
    const ctx = await bootConfig(
      '{ chunkSize: 2, delayMs: 60000, rules: [{ reply: { text: abcde, delayMs: 0 } }] }',
    )

    const pieces = (await chunksOf(ctx)).map((chunk) => ('text' in chunk ? chunk.text : chunk.type))

    expect(pieces).toEqual(['ab', 'cd', 'e', 'finish'])
  })

  test('waits before each delta and each call', async () => {
    const ctx = await bootRules(
      '- reply: { text: abcd, chunkSize: 1, delayMs: 20, calls: [{ name: a }] }',
    )
    const start = performance.now()

    await chunksOf(ctx)

    // Timers may fire a fraction of a millisecond early.
    expect(performance.now() - start).toBeGreaterThan(5 * 20 - 5)
  })

  test.each(['{ text: a, stall: true }', '{ text: abc, chunkSize: 1, delayMs: 60000 }'])(
    'an abort ends %s at once',
    async (reply) => {
      const ctx = await bootRules(`- reply: ${reply}`)
      const controller = new AbortController()
      const start = performance.now()
      const chunks = chunksOf(ctx, { signal: controller.signal })

      setImmediate(() => controller.abort())

      expect((await chunks).at(-1)).toEqual({ type: 'finish', reason: 'aborted' })
      expect(performance.now() - start).toBeLessThan(5_000)
    },
  )

  test('an aborted signal gets no text', async () => {
    const ctx = await bootRules('- reply: { text: a, stall: true }')

    expect(await chunksOf(ctx, { signal: AbortSignal.abort() })).toEqual([
      { type: 'finish', reason: 'aborted' },
    ])
  })

  test('a stall shows its text first and ends with the turn', async () => {
    const ctx = await bootRules('- reply: { text: so far, stall: true }')
    const { agent } = ctx.agents.create({ cwd: '/' })
    const deltas: string[] = []
    ctx.on('agent/delta', ({ text }) => void deltas.push(text))
    const turn = agent.send('go')
    await waitFor('the text of the stalled reply', () => deltas.length > 0)

    agent.cancel()

    expect(await turn).toMatchObject({ reason: 'aborted' })
    expect(answerOf(agent)).toBe('so far')
  })
})

describe('one playbook for several agents', () => {
  test('five agents that run at once never take each other’s rules', async () => {
    const ctx = await bootRules(`
- when: { user: 'count (\\w+)', step: 0 }
  reply: { text: 'on it', chunkSize: 1, delayMs: 1, calls: [{ name: echo, input: { text: '{{user.1}}' } }] }
- when: { user: 'count (\\w+)', tool: echo, step: 1, result: 'echo (\\w+)' }
  reply: { calls: [{ name: echo, input: { text: '{{result.1}}{{user.1}}' } }] }
- when: { user: 'count (\\w+)', step: 2, result: 'echo (\\w+)' }
  reply: { text: 'done {{user.1}} {{result.1}}', chunkSize: 1, delayMs: 1 }
`)
    ctx.tools.register({
      name: 'echo',
      description: 'echoes',
      parameters: z.object({ text: z.string() }),
      execute: async ({ text }) => `echo ${text}`,
    })
    const words = ['ant', 'bee', 'cat', 'dog', 'eel']
    const agents = words.map(() => ctx.agents.create({ cwd: '/' }).agent)

    const ends = await Promise.all(
      agents.map((agent, index) => agent.send(`count ${words[index]}`)),
    )

    expect(ends.map(({ reason }) => reason)).toEqual(words.map(() => 'completed'))
    expect(agents.map(answerOf)).toEqual(words.map((word) => `done ${word} ${word}${word}`))
  })

  test('the same request gets the same reply however often it is asked', async () => {
    const ctx = await bootRules(calls)

    const replies = await Promise.all([chunksOf(ctx), chunksOf(ctx), chunksOf(ctx)])

    expect(replies[1]).toEqual(replies[0])
    expect(replies[2]).toEqual(replies[0])
  })

  test('a conversation of thousands of messages is read in a few milliseconds', async () => {
    const ctx = await bootRules('- when: { turn: 2500 }\n  reply: { text: a }')
    const messages = Array.from({ length: 2500 }, () => [
      user('x'.repeat(1000)),
      assistant('y'),
    ]).flat()
    await chunksOf(ctx, { messages })
    const start = performance.now()

    for (let count = 0; count < 20; count += 1) {
      await chunksOf(ctx, { messages })
    }

    expect((performance.now() - start) / 20).toBeLessThan(20)
  })
})

function answerOf({ session }: Agent): string {
  const last = [...session.events()].findLast(({ type }) => type === 'assistant/message')
  if (last?.type !== 'assistant/message') return ''
  return last.data.content.flatMap((block) => (block.type === 'text' ? block.text : [])).join('')
}
