import type { Context } from '@deepseek-ai/cordis'
import { violationsOf } from '@deepseek-ai/dsh-invariants'
import { bootYml, collectErrors, scriptedModel } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import * as agentCore from '../src/index.ts'

const services = ['llm', 'sessions', 'tools', 'systemPrompt', 'agents'] as const

function fiberOf(ctx: Context): Context['fiber'] {
  const entry = [...ctx.loader.entries()].find(({ options }) => options.id === 'core')
  if (entry?.fiber === undefined) throw new Error('the core is not loaded')
  return entry.fiber
}

describe('agent-core', () => {
  test('gives, as one yml entry, an agent that answers and calls tools', async () => {
    const ctx = await bootYml(`- name: '@deepseek-ai/dsh-agent-core'`)
    ctx.llm.registerAdapter(
      scriptedModel([
        { text: 'let me see', calls: [{ name: 'add', input: { a: 1, b: 2 } }] },
        'it is 3',
      ]),
    )
    ctx.tools.register({
      name: 'add',
      description: 'Adds two numbers.',
      parameters: z.object({ a: z.number(), b: z.number() }),
      execute: async ({ a, b }) => `${a + b}`,
    })
    const { agent, dispose } = ctx.agents.create({ cwd: '/' })

    const end = await agent.send('what is 1 + 2?')
    await dispose()

    expect(end).toEqual({ reason: 'completed' })
    expect(violationsOf(agent.session.events())).toEqual([])
    expect([...agent.session.events()].map(({ type }) => type)).toEqual([
      'turn/start',
      'user/message',
      'step/start',
      'assistant/message',
      'tool/call',
      'tool/result',
      'step/end',
      'step/start',
      'assistant/message',
      'step/end',
      'turn/end',
    ])
    expect(ctx.agents.list()).toEqual([])
  })

  test('hands each value of its config to the part that it is for', async () => {
    const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-agent-core'
  config:
    model: b
    maxSteps: 1
    persona: You are {{model}}.
    abortGraceMs: 0
    stopGraceMs: 0
`)
    const model = scriptedModel([{ calls: [{ name: 'work' }] }], 'b')
    ctx.llm.registerAdapter(scriptedModel([], 'a'))
    ctx.llm.registerAdapter(model)
    ctx.tools.register({
      name: 'work',
      description: 'Works.',
      parameters: z.object({}),
      execute: () => new Promise(() => {}),
    })
    const { agent, dispose } = ctx.agents.create({ cwd: '/' })
    const end = agent.send('go')
    await new Promise((resolve) =>
      ctx.on('session/event', ({ event }) => void (event.type === 'tool/call' && resolve(0))),
    )

    await dispose()

    expect(await end).toMatchObject({ reason: 'aborted' })
    expect(model.requests[0]?.system).toBe('You are b.')
    expect(agent.options).toEqual({ model: 'b', maxSteps: 1 })
  })

  test('leaves the defaults to its parts', async () => {
    const ctx = await bootYml(`- name: '@deepseek-ai/dsh-agent-core'`)
    const model = scriptedModel(['hello'])
    ctx.llm.registerAdapter(model)

    const { agent } = ctx.agents.create({ cwd: '/' })
    await agent.send('hello')

    expect(agent.options).toEqual({ model: 'scripted', maxSteps: 200 })
    expect(model.requests[0]?.system).toBe('')
  })

  test.each([
    ['maxSteps: 0', /\$\.maxSteps expected number >= 1 but got 0/],
    ['abortGraceMs: -1', /\$\.abortGraceMs expected number >= 0 but got -1/],
    ['persona: "{{folder}}"', /unknown variable "\{\{folder\}\}"/],
    ['model: [a]', /\$\.model expected string but got a/],
  ])('fails to load with %s, and says why', async (line, message) => {
    const ctx = await bootYml(
      `
- id: core
  name: '@deepseek-ai/dsh-agent-core'
  config:
    ${line}
`,
      { expectErrors: /./ },
    )

    await expect(fiberOf(ctx).await()).rejects.toThrow(message)
  })

  test('checks every log of its agents', async () => {
    const ctx = await bootYml(`- name: '@deepseek-ai/dsh-agent-core'`, { expectErrors: /at seq/ })
    const errors = collectErrors(ctx)

    ctx.sessions.prepare({ cwd: '/' }).append('turn/end', { reason: 'completed' })

    expect(errors).toHaveLength(1)
  })

  test('is there once after twenty reloads, and disposes its agents each time', async () => {
    const ctx = await bootYml(`
- id: core
  name: '@deepseek-ai/dsh-agent-core'
`)
    const listeners = (): number => ctx.events._hooks['session/event']?.length ?? 0
    const before = listeners()

    for (let reload = 0; reload < 20; reload += 1) {
      ctx.llm.registerAdapter(scriptedModel(['hello']))
      const { agent } = ctx.agents.create({ cwd: '/' })
      await fiberOf(ctx).restart()
      await ctx.loader.await()
      expect(agent.status).toBe('disposed')
    }

    expect(listeners()).toBe(before)
    expect(ctx.llm.models()).toEqual([])
    ctx.llm.registerAdapter(scriptedModel(['hello']))
    expect(await ctx.agents.create({ cwd: '/' }).agent.send('hello')).toEqual({
      reason: 'completed',
    })
  })

  test('takes its services along when it is unloaded', async () => {
    const ctx = await bootYml(`
- id: core
  name: '@deepseek-ai/dsh-agent-core'
`)
    const loaded = services.filter((name) => ctx.get(name) !== undefined)

    await fiberOf(ctx).dispose()

    expect(loaded).toEqual(services)
    expect(services.filter((name) => ctx.get(name) !== undefined)).toEqual([])
  })

  test('is what the Loader takes from the module', async () => {
    const ctx = await bootYml('[]')

    const plugin = ctx.loader.unwrapExports(agentCore) as typeof agentCore

    expect(plugin.name).toBe('agent-core')
    expect(plugin.Config({})).toEqual({})
    expect(plugin.apply).toBeInstanceOf(Function)
    expect(plugin).not.toHaveProperty('default')
  })
})
