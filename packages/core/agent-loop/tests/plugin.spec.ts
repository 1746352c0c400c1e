import type { Context } from '@deepseek-ai/cordis'
import { bootYml, collectErrors, gate, scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import * as agentLoop from '../src/index.ts'
import { createHost, createTool, storyOf } from './helpers.ts'

function loopOf(ctx: Context): Context['fiber'] {
  const entry = [...ctx.loader.entries()].find(({ options }) => options.id === 'loop')
  if (entry?.fiber === undefined) throw new Error('the loop is not loaded')
  return entry.fiber
}

function countListeners(ctx: Context): Record<string, number> {
  const { _hooks: hooks } = ctx.events
  return Object.fromEntries(Object.keys(hooks).map((name) => [name, hooks[name]?.length ?? 0]))
}

/** Calls `work` again and again, until it is told to stop. */
const modelFile = `
export const inject = ['llm']
export function apply(ctx) {
  ctx.llm.registerAdapter({ name: 'm', models: [{ name: 'm' }], stream })
}
async function* stream({ messages }) {
  await new Promise(setImmediate)
  const isOver = messages.some(({ content }) => content[0].text === 'stop')
  if (!isOver) yield { type: 'tool-call', callId: 'a', name: 'work', input: {} }
  yield { type: 'usage', usage: { inputTokens: 1, outputTokens: 1 } }
  yield { type: 'finish', reason: isOver ? 'stop' : 'tool-calls' }
}
`

const workFile = `
import { z } from 'zod'
export const inject = ['tools']
export function apply(ctx) {
  const execute = async () => 'done'
  ctx.tools.register({ name: 'work', description: 'works', parameters: z.object({}), execute })
}
`

describe('agent-loop', () => {
  test('is what the Loader takes from the module, with its needs and its config', async () => {
    const ctx = await bootYml('[]')

    const plugin = ctx.loader.unwrapExports(agentLoop) as typeof agentLoop

    expect(plugin.name).toBe('agent-loop')
    expect(plugin.inject).toEqual(['llm', 'sessions', 'tools', 'systemPrompt', 'agents'])
    expect(plugin.Config({})).toEqual({ abortGraceMs: 1000, stopGraceMs: 15_000 })
    expect(plugin.apply).toBeInstanceOf(Function)
    expect(plugin).not.toHaveProperty('default')
  })

  test.each([
    ['abortGraceMs', -1],
    ['abortGraceMs', 60_001],
    ['stopGraceMs', 0.5],
    ['stopGraceMs', 600_001],
  ])('refuses to load with %s: %s', async (key, value) => {
    expect(() => agentLoop.Config({ [key]: value })).toThrow(key)
  })

  test('refuses to be loaded twice, and the first one keeps working', async () => {
    const { ctx, createAgent } = await createHost(['hello'], {
      expectErrors: /an agent loop is already registered/,
    })
    const errors = collectErrors(ctx)

    await expect(ctx.plugin(agentLoop, {})).rejects.toMatchObject({ code: 'DUPLICATE_DRIVER' })

    expect(errors).toHaveLength(1)
    expect(await createAgent().send('hello')).toEqual({ reason: 'completed' })
  })

  test('lets a running agent finish on its code when it is reloaded', async () => {
    const held = gate()
    const { ctx, createAgent } = await createHost([
      { text: 'before', until: held.opened, calls: [{ name: 'work', callId: 'a' }] },
      'after',
      'and later',
    ])
    ctx.tools.register(createTool('work'))
    const agent = createAgent()
    const end = agent.send('go')

    await loopOf(ctx).restart()
    held.open()

    expect(await end).toEqual({ reason: 'completed' })
    expect(storyOf(agent).filter((line) => line.startsWith('model'))).toEqual([
      'model: before work#a (tool-calls)',
      'model: after (stop)',
    ])
    expect(await agent.send('still there?')).toEqual({ reason: 'completed' })
    expect(agent.ctx.get('agents')?.list()).toEqual([agent])
  })

  test('leaves one driver and as many listeners as before after twenty reloads', async () => {
    const { ctx, createAgent } = await createHost(['one', 'two'])
    const old = createAgent()
    const before = countListeners(ctx)

    for (let reload = 0; reload < 20; reload += 1) await loopOf(ctx).restart()

    expect(countListeners(ctx)).toEqual(before)
    expect(await createAgent().send('hello')).toEqual({ reason: 'completed' })
    expect(await old.send('hello')).toEqual({ reason: 'completed' })
    expect(() => ctx.agents.registerDriver({ create: () => old as never })).toThrow(
      'an agent loop is already registered',
    )
  })

  test('lets a turn go on while its model and its tool are reloaded', async () => {
    const ctx = await bootYml(
      `
- name: '@deepseek-ai/dsh-agent-core'
- name: ./model.js
- name: ./work.js
`,
      { files: { 'model.js': modelFile, 'work.js': workFile } },
    )
    const entries = [...ctx.loader.entries()].filter(({ options }) => options.name.startsWith('./'))
    const { agent } = ctx.agents.create({ cwd: '/', options: { maxSteps: 100_000 } })
    const turn = agent.send('go')

    for (let reload = 0; reload < 20; reload += 1) {
      for (const { fiber } of entries) await fiber?.restart()
    }
    const steps = agent.session.length
    await waitFor('another step', () => agent.session.length > steps)
    void agent.steer('stop')

    expect(await turn).toEqual({ reason: 'completed' })
    expect(ctx.llm.models()).toEqual([{ name: 'm' }])
    expect(ctx.tools.table.names()).toEqual(['work'])
  })

  test('creates no agents while it is unloaded', async () => {
    const { ctx, createAgent } = await createHost([])

    await loopOf(ctx).dispose()

    expect(() => createAgent()).toThrow('cannot create an agent: no agent loop is loaded')
  })

  test('stops its agents when a service that they need is unloaded', async () => {
    const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-agent-loop'
- name: '@deepseek-ai/dsh-agent'
- name: '@deepseek-ai/dsh-system-prompt'
- name: '@deepseek-ai/dsh-tools'
- id: sessions
  name: '@deepseek-ai/dsh-session'
- name: '@deepseek-ai/dsh-llm'
`)
    ctx.llm.registerAdapter(scriptedModel([{ text: 'working', until: new Promise(() => {}) }]))
    const { agent } = ctx.agents.create({ cwd: '/' })
    const end = agent.send('go')
    const entry = [...ctx.loader.entries()].find(({ options }) => options.id === 'sessions')

    await entry?.fiber?.dispose()

    expect(await end).toMatchObject({ reason: 'aborted' })
    await waitFor('the agent is gone', () => agent.status === 'disposed')
  })
})
