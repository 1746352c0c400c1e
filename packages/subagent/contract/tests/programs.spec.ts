/** Random programs of a parent that delegates: whatever they do, the promises hold. */
import { Context } from '@deepseek-ai/cordis'
import * as agentCore from '@deepseek-ai/dsh-agent-core'
import { violationsOf } from '@deepseek-ai/dsh-invariants'
import type { JsonValue } from '@deepseek-ai/dsh-llm'
import type { Session, TurnEnd } from '@deepseek-ai/dsh-session'
import SubagentService from '@deepseek-ai/dsh-subagent'
import * as fork from '@deepseek-ai/dsh-subagent-fork'
import * as spawn from '@deepseek-ai/dsh-subagent-spawn'
import { collectErrors, type ScriptedReply, scriptedModel } from '@deepseek-ai/dsh-testkit'
import * as toolSubagent from '@deepseek-ai/dsh-tool-subagent'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

/** How many programs; the environment may ask for more. */
const numRuns = Number(process.env['DSH_PROGRAMS'] ?? 1000)

const never = new Promise<void>(() => {})

/** A call that a model may make; names and arguments that are wrong among them. */
const call = fc.constantFrom<{ name: string; input: JsonValue }[]>(
  { name: 'ok', input: {} },
  { name: 'fails', input: {} },
  { name: 'waits', input: {} },
  { name: 'ok', input: 'no object' },
  { name: 'unknown', input: {} },
  { name: 'spawn', input: { description: 'a child', prompt: 'go on' } },
  { name: 'fork', input: { description: 'a fork', prompt: 'go on' } },
  { name: 'hasty', input: { description: 'a child without time', prompt: 'go on' } },
)

const reply = fc.oneof<fc.WeightedArbitrary<ScriptedReply>[]>(
  { weight: 4, arbitrary: fc.constant({ text: 'done' }) },
  {
    weight: 5,
    arbitrary: fc
      .array(call, { minLength: 1, maxLength: 3 })
      .map((calls) => ({ text: 'so', calls })),
  },
  {
    weight: 1,
    arbitrary: fc.array(call, { minLength: 1, maxLength: 2 }).chain((calls) =>
      fc.constantFrom(
        { calls, finish: 'max-tokens' as const },
        { calls, finish: 'refusal' as const },
        {
          text: 'half',
          finish: 'error' as const,
          error: { code: 'MODEL_FAILED', message: 'no' },
        },
      ),
    ),
  },
  { weight: 1, arbitrary: fc.constant({ text: 'half', until: never }) },
  { weight: 1, arbitrary: fc.constant({ text: '' }) },
)

const step = fc.constantFrom('send', 'send', 'steer', 'cancel', 'tick', 'tick', 'cancel a run')

interface Program {
  readonly replies: readonly ScriptedReply[]
  readonly operations: readonly string[]
  readonly isDisposedEarly: boolean
}

const program: fc.Arbitrary<Program> = fc.record({
  replies: fc.array(reply, { minLength: 1, maxLength: 12 }),
  operations: fc.array(step, { minLength: 1, maxLength: 14 }),
  isDisposedEarly: fc.boolean(),
})

describe('random programs', () => {
  test(
    'leave balanced logs, one result per call, settled inputs and no run, agent or session',
    { timeout: numRuns * 1000 },
    () => fc.assert(fc.asyncProperty(program, hold), { numRuns }),
  )
})

/** Runs a program in a context of its own, and checks what it left. */
async function hold({ replies, operations, isDisposedEarly }: Program): Promise<void> {
  const ctx = await createHost(replies)
  const errors = collectErrors(ctx)
  const sessions: Session[] = []
  ctx.on('session/created', ({ session }) => void sessions.push(session))
  const { agent, dispose } = ctx.agents.create({ cwd: '/' })
  const ends: Promise<TurnEnd>[] = []

  for (const operation of operations) {
    if (operation === 'send') ends.push(agent.send('go on'))
    else if (operation === 'steer') ends.push(agent.steer('also this'))
    else if (operation === 'cancel') agent.cancel()
    else if (operation === 'cancel a run') ctx.agents.list().at(-1)?.cancel('by the program')
    else await new Promise(setImmediate)
  }
  if (!isDisposedEarly) {
    agent.cancel()
    await agent.whenIdle()
  }
  await dispose()

  const reasons = (await Promise.all(ends)).map(({ reason }) => reason)
  expect(reasons).toHaveLength(ends.length)
  for (const session of sessions) {
    const own = session.header.seedLength ?? 0
    expect(violationsOf(session.events())).toEqual([])
    expect(session.at(own)?.type ?? 'turn/start').toBe('turn/start')
  }
  expect(ctx.subagents.runs()).toEqual([])
  expect(ctx.agents.list()).toEqual([])
  expect(ctx.sessions.list()).toEqual([])
  await ctx.fiber.dispose()
  expect(errors).toEqual([])
}

async function createHost(replies: readonly ScriptedReply[]): Promise<Context> {
  const ctx = new Context()
  await ctx.plugin(agentCore, { maxSteps: 5, abortGraceMs: 1 })
  await ctx.plugin(SubagentService, {
    maxConcurrent: 2,
    maxConcurrentPerParent: 2,
    maxPerTurn: 4,
  })
  await Promise.all([ctx.plugin(spawn, {}), ctx.plugin(fork, {})])
  await Promise.all([
    ctx.plugin(toolSubagent, { provider: 'spawn', toolName: 'spawn', maxDepth: 2 }),
    ctx.plugin(toolSubagent, { provider: 'fork', toolName: 'fork', maxDepth: 2 }),
    ctx.plugin(toolSubagent, { provider: 'spawn', toolName: 'hasty', timeoutMs: 1 }),
  ])
  let requests = 0
  ctx.llm.registerAdapter(
    scriptedModel(() => {
      requests += 1
      // So that children which delegate for ever come to an end.
      return requests > 60 ? 'done' : (replies[requests % replies.length] ?? 'done')
    }),
  )
  const parameters = z.object({})
  const description = 'a tool'
  const tools = {
    ok: async () => 'fine',
    fails: async () => {
      throw new Error('it fails')
    },
    waits: (_: object, { signal }: { signal: AbortSignal }) =>
      new Promise<string>((resolve) => {
        const release = setTimeout(resolve, 2, 'late')
        signal.addEventListener('abort', () => {
          clearTimeout(release)
          resolve('stopped')
        })
      }),
  }
  for (const [name, execute] of Object.entries(tools)) {
    ctx.tools.register({ name, description, parameters, parallel: name === 'ok', execute })
  }
  return ctx
}
