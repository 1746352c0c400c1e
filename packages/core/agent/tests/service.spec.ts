import type { Context } from '@deepseek-ai/cordis'
import type { SessionId } from '@deepseek-ai/dsh-session'
import { bootYml, gate, scriptedModel } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import * as agent from '../src/index.ts'
import AgentService, { AgentError } from '../src/index.ts'
import { collectWarnings, createDriver, createStore } from './helpers.ts'

const yml = `
- name: '@deepseek-ai/dsh-agent-loop'
- id: agents
  name: '@deepseek-ai/dsh-agent'
  config:
    model: scripted
- name: '@deepseek-ai/dsh-system-prompt'
- name: '@deepseek-ai/dsh-tools'
- name: '@deepseek-ai/dsh-session'
- name: '@deepseek-ai/dsh-llm'
`

function fiberOf(ctx: Context, id: string): NonNullable<Context['fiber']> {
  const entry = [...ctx.loader.entries()].find((item) => item.options.id === id)
  if (entry?.fiber === undefined) throw new Error(`entry "${id}" is not loaded`)
  return entry.fiber
}

describe('AgentService', () => {
  test('creates agents that answer, in whatever order the yml lists its parts', async () => {
    const ctx = await bootYml(yml)
    ctx.llm.registerAdapter(scriptedModel(['hello to you']))
    const told: string[] = []
    ctx.on('agent/created', ({ agent: { id } }) => void told.push(`created ${id}`))
    ctx.on('agent/disposed', ({ agent: { id } }) => void told.push(`disposed ${id}`))

    const handle = ctx.agents.create({ id: 'one' as SessionId, cwd: '/' })
    const end = await handle.agent.send('hello')
    await handle.dispose()

    expect(end).toEqual({ reason: 'completed' })
    expect(handle.agent.session.deriveMessages().at(-1)).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'hello to you' }],
    })
    expect(told).toEqual(['created one', 'disposed one'])
    expect(ctx.agents.list()).toEqual([])
  })

  test('is what the Loader takes from the module', async () => {
    const ctx = await bootYml('[]')

    const plugin = ctx.loader.unwrapExports(agent) as typeof AgentService

    expect(plugin).toBe(AgentService)
    expect(plugin.inject).toEqual(['llm', 'sessions'])
    expect(plugin.Config({})).toEqual({ maxSteps: 200 })
  })

  test.each([0, -1, 1.5, Number.NaN, 'many'])('refuses %s for maxSteps', (maxSteps) => {
    expect(() => AgentService.Config({ maxSteps: maxSteps as number })).toThrow('maxSteps')
  })

  test('disposes every agent before its plugin is unloaded', async () => {
    const ctx = await bootYml(yml)
    const tied = gate()
    ctx.llm.registerAdapter(scriptedModel([{ text: 'working', until: new Promise(() => {}) }]))
    const { agent: running } = ctx.agents.create({ cwd: '/' })
    const { agents } = ctx
    ctx.agents.create({ cwd: '/' })
    running.onDispose(() => tied.opened)
    const end = running.send('work')

    const unloading = fiberOf(ctx, 'agents').dispose()
    const whileTied = agents.list().length
    tied.open()
    await unloading

    expect(whileTied).toBe(2)
    expect(await end).toMatchObject({ reason: 'aborted' })
    expect(agents.list()).toEqual([])
    expect(ctx.sessions.list()).toEqual([])
    expect(running.status).toBe('disposed')
  })

  test('resumes a session that a store kept over a restart', async () => {
    const store = createStore()
    const before = await bootYml(yml)
    before.llm.registerAdapter(scriptedModel(['one']))
    before.sessions.registerStore(store)
    const first = before.agents.create({ id: 'kept' as SessionId, cwd: '/work' })
    await first.agent.send('first')
    await first.dispose()
    const ctx = await bootYml(yml)
    const model = scriptedModel(['two'])
    ctx.llm.registerAdapter(model)
    ctx.sessions.registerStore(store)

    const { agent: resumed } = await ctx.agents.resume('kept' as SessionId)
    await resumed.send('second')

    expect(ctx.agents.get('kept' as SessionId)).toBe(resumed)
    expect(model.requests[0]?.messages.map(({ content }) => content[0])).toMatchObject([
      { text: 'first' },
      { text: 'one' },
      { text: 'second' },
    ])
    expect(resumed.session.turnCount).toBe(2)
  })

  test('forgets a driver when its plugin is disposed, and its agents go on', async () => {
    const ctx = await bootYml(yml.replace(/.*agent-loop.*/, ''))
    ctx.llm.registerAdapter(scriptedModel([]))
    const fiber = await ctx.inject(['agents'], (child: Context) => {
      child.agents.registerDriver(createDriver())
    })
    expect(() => ctx.agents.registerDriver(createDriver())).toThrow(AgentError)
    const { agent: live } = ctx.agents.create({ cwd: '/' })

    await fiber.dispose()

    expect(() => ctx.agents.create({ cwd: '/' })).toThrow('no agent loop is loaded')
    expect(ctx.agents.list()).toEqual([live])
  })

  test('warns through the log of its context', async () => {
    const ctx = await bootYml(yml)
    const warnings = collectWarnings(ctx)
    ctx.llm.registerAdapter(scriptedModel([]))
    ctx.sessions.registerStore(createStore({ close: () => Promise.reject(new Error('full')) }))

    await ctx.agents.create({ id: 'one' as SessionId, cwd: '/' }).dispose()

    expect(warnings.at(-1)).toContain('the last events of session "one" were not stored')
  })
})
