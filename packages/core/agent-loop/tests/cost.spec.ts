/** The work of a turn is counted, not timed: it must not grow with what lies behind it. */
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { StreamChunk } from '@deepseek-ai/dsh-llm'
import type { Tool } from '@deepseek-ai/dsh-tools'
import { describe, expect, test, vi } from 'vitest'
import { createAdapter, createHost, createStore, createTool, streamOf } from './helpers.ts'

const done: readonly StreamChunk[] = [
  { type: 'text-delta', text: 'done' },
  { type: 'finish', reason: 'stop' },
]

/** Answers `call N` with N calls of the tool, and everything else with a text. */
function createCaller(): ReturnType<typeof createAdapter> {
  return createAdapter(({ messages }) => {
    const block = messages.at(-1)?.content[0]
    const text = block?.type === 'text' ? block.text : ''
    if (!text.startsWith('call ')) return streamOf(done)
    const calls = Array.from({ length: Number(text.slice(5)) }, (_, index) => ({
      type: 'tool-call' as const,
      callId: `call-${index}`,
      name: 'look',
      input: {},
    }))
    return streamOf([...calls, { type: 'finish', reason: 'tool-calls' }])
  })
}

interface Work {
  /** Of the log, by whoever. */
  readonly reads: number
  readonly events: number
  /** Reads of a service through a context of a plugin. */
  readonly services: number
  readonly flushes: number
}

/** Counts what `send` makes the harness do. */
async function workOf(ctx: Context, agent: Agent, input: string): Promise<Work> {
  const { session } = agent
  const flush = vi.spyOn(ctx.sessions.table, 'flush')
  const at = vi.spyOn(session, 'at')
  const from = session.length
  let services = 0
  const undo = ctx.on('internal/get', (_, __, ___, next) => {
    services += 1
    return next()
  })
  await agent.send(input)
  undo()
  const reads = at.mock.calls.length
  at.mockRestore()
  const flushes = flush.mock.calls.length
  flush.mockRestore()
  return { reads, events: session.length - from, services, flushes }
}

async function createCounted(execute?: Tool['execute']): Promise<{ ctx: Context; agent: Agent }> {
  const { ctx, createAgent } = await createHost([])
  ctx.llm.registerAdapter(createCaller())
  ctx.tools.register(createTool('look', execute, { parallel: true }))
  const agent = createAgent({ options: { model: 'custom' } })
  await agent.send('hello')
  return { ctx, agent }
}

describe('a turn', () => {
  test('does the same work after 1,000 turns as after one', async () => {
    const { ctx, agent } = await createCounted()

    const early = await workOf(ctx, agent, 'call 3')
    for (let turn = 0; turn < 1000; turn += 1) await agent.send('hello')
    const late = await workOf(ctx, agent, 'call 3')

    expect(late).toEqual(early)
  })

  test('reads each of its own events once', async () => {
    const { ctx, agent } = await createCounted()
    for (let turn = 0; turn < 10; turn += 1) await agent.send('hello')

    const { reads, events } = await workOf(ctx, agent, 'call 3')

    // What the last step adds is read with the first request of the next turn.
    expect(reads).toBe(events)
  })

  test('looks no service up: all were resolved when the loop was loaded', async () => {
    const { ctx, agent } = await createCounted()

    const { services } = await workOf(ctx, agent, 'call 3')

    expect(services).toBe(0)
  })

  test('is charged with the services that a tool looks up', async () => {
    const { ctx, agent } = await createCounted(async (_, exec) =>
      exec.agent.ctx.tools.table.names().join(),
    )

    const { services } = await workOf(ctx, agent, 'call 3')

    expect(services).toBe(3)
  })

  test.each([1, 3, 50])('with %i calls flushes before they run and at its end', async (calls) => {
    const { ctx, agent } = await createCounted()
    ctx.sessions.registerStore(createStore())

    const { flushes, events } = await workOf(ctx, agent, `call ${calls}`)

    expect(flushes).toBe(2)
    // Turn, input, two steps with a message each, and a call and a result for each call.
    expect(events).toBe(9 + 2 * calls)
  })
})

describe('a reply of 1,000 deltas', () => {
  test('makes one announcement for each, one event for all, and reads nothing meanwhile', async () => {
    const { ctx, createAgent } = await createHost([])
    const deltas = Array.from({ length: 1000 }, () => ({ type: 'text-delta', text: 'x' }) as const)
    const script = [...deltas, { type: 'finish', reason: 'stop' } as const]
    ctx.llm.registerAdapter(createAdapter(() => streamOf(script)))
    const agent = createAgent({ options: { model: 'custom' } })
    const heard = vi.fn<() => void>()
    ctx.on('agent/delta', heard)

    const work = await workOf(ctx, agent, 'go')

    expect(heard).toHaveBeenCalledTimes(1000)
    expect(work).toEqual({ reads: 3, events: 6, services: 0, flushes: 1 })
  })
})
