import { setImmediate as tick } from 'node:timers/promises'
import type { FinishReason } from '@deepseek-ai/dsh-llm'
import { violationsOf } from '@deepseek-ai/dsh-invariants'
import type { TurnEnd } from '@deepseek-ai/dsh-session'
import type { ScriptedReply } from '@deepseek-ai/dsh-testkit'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createHost, createTool } from './helpers.ts'

const forever = new Promise<never>(() => {})

const replies: fc.Arbitrary<ScriptedReply> = fc.record(
  {
    text: fc.constantFrom('', 'some text'),
    calls: fc.array(
      fc.record({
        name: fc.constantFrom('quick', 'slow', 'parallel', 'fails', 'deaf', 'ends', 'odd', 'gone'),
        callId: fc.constantFrom('', 'a', 'b'),
      }),
      { maxLength: 4 },
    ),
    finish: fc.constantFrom<FinishReason>('stop', 'tool-calls', 'max-tokens', 'refusal', 'error'),
    until: fc.constantFrom(forever, tick()),
    isDeaf: fc.boolean(),
  },
  { requiredKeys: ['text', 'calls'] },
)

const actions = fc.constantFrom('send', 'steer', 'cancel', 'tick', 'tick', 'tick', 'tick')

describe('an agent', () => {
  test('keeps its log sound and settles all input, whatever comes and in whatever order', async () => {
    const scripts = new Map<string, readonly ScriptedReply[]>()
    const { ctx } = await createHost(
      ({ sessionId }, index) => scripts.get(sessionId)?.[index] ?? 'done',
      { config: { abortGraceMs: 0, stopGraceMs: 0 } },
    )
    ctx.tools.register(createTool('quick'))
    ctx.tools.register(createTool('slow', async () => (await tick(), 'late')))
    ctx.tools.register(createTool('parallel', async () => (await tick(), 'p'), { parallel: true }))
    ctx.tools.register(createTool('fails', () => Promise.reject(new Error('no'))))
    ctx.tools.register(createTool('deaf', () => forever, { parallel: true }))
    ctx.tools.register(createTool('odd', async () => undefined as never))
    ctx.tools.register(
      createTool('ends', async () => ({ content: [], isError: false, endsTurn: true })),
    )

    await fc.assert(
      fc.asyncProperty(
        fc.array(replies, { maxLength: 6 }),
        fc.array(actions, { maxLength: 30 }),
        async (script, steps) => {
          const { agent, dispose } = ctx.agents.create({ cwd: '/', options: { maxSteps: 4 } })
          scripts.set(agent.id, script)
          const ends: Promise<TurnEnd>[] = []
          for (const action of steps) {
            if (action === 'send') ends.push(agent.send('a prompt'))
            else if (action === 'steer') ends.push(agent.steer('a hint'))
            else if (action === 'cancel') agent.cancel()
            else await tick()
          }
          agent.cancel()
          await agent.whenIdle()

          expect(violationsOf(agent.session.events())).toEqual([])
          expect(agent.status).toBe('idle')
          const inputs = [...agent.session.events()].filter(({ type }) => type === 'user/message')
          expect(inputs).toHaveLength(ends.length)
          expect(await Promise.all(ends)).toHaveLength(ends.length)
          await dispose()
        },
      ),
      { numRuns: 150 },
    )
  }, 30_000)
})
