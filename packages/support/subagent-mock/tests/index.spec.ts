import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { SubagentResult } from '@deepseek-ai/dsh-subagent'
import { bootYml, collectErrors, scriptedModel } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import type { Config, MockProvider } from '../src/index.ts'

/** Boots the plugin from yml, with `config` as its config. */
async function boot(config: Partial<Config>): Promise<{ ctx: Context; parent: Agent }> {
  const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-mock'
  config: ${JSON.stringify(config)}
`)
  ctx.llm.registerAdapter(scriptedModel([]))
  return { ctx, parent: ctx.agents.create({ cwd: '/' }).agent }
}

async function resultOf(config: Partial<Config>): Promise<SubagentResult> {
  const { ctx, parent } = await boot(config)
  const run = ctx.subagents.start(config.providerName ?? 'mock', { prompt: 'go', parent })
  return run.result
}

describe('the plugin', () => {
  test('registers a provider that can do nothing beyond answering, unless it is told so', async () => {
    const { ctx } = await boot({})

    const provider = ctx.subagents.getProvider('mock')

    expect(provider).toMatchObject({
      name: 'mock',
      capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
      inheritsParentContext: false,
    })
  })

  test('declares the capabilities and the context of its config', async () => {
    const { ctx } = await boot({
      providerName: 'able',
      outputSchema: true,
      depthLimit: true,
      toolFilter: true,
      inheritsParentContext: true,
    })

    expect(ctx.subagents.list()).toEqual(['able'])
    expect(ctx.subagents.getProvider('able')).toMatchObject({
      capabilities: { outputSchema: true, depthLimit: true, toolFilter: true },
      inheritsParentContext: true,
    })
  })

  test('goes with its entry', async () => {
    const { ctx } = await boot({})
    const entry = [...ctx.loader.entries()].find(({ options }) => options.name.endsWith('mock'))

    await entry?.fiber?.dispose()

    expect(ctx.subagents.list()).toEqual([])
  })

  test.each<[string, Partial<Config>, SubagentResult]>([
    ['a text', {}, { output: [{ type: 'text', text: 'done' }], stopReason: 'completed' }],
    [
      'the prompt in its text, as it is',
      { reply: 'asked for {{prompt}}, $&' },
      { output: [{ type: 'text', text: 'asked for go, $&' }], stopReason: 'completed' },
    ],
    ['nothing', { reply: '' }, { output: [], stopReason: 'completed' }],
    [
      'a value',
      { reply: '', structured: { found: [1] } },
      { output: [], stopReason: 'completed', structured: { found: [1] } },
    ],
    [
      'another stop reason with its diagnostic',
      { reply: 'half', stopReason: 'max-tokens', diagnostic: 'too long' },
      {
        output: [{ type: 'text', text: 'half' }],
        stopReason: 'max-tokens',
        diagnostic: 'too long',
      },
    ],
    [
      'a rejection, which the seam turns into an error',
      { failure: 'rejects-result' },
      {
        output: [],
        stopReason: 'error',
        diagnostic: 'subagent provider "mock" failed: the mock has a fault',
      },
    ],
  ])('scripts a child that ends with %s', async (_, config, expected) => {
    expect(await resultOf(config)).toEqual(expected)
  })

  test('scripts a child that takes its time', async () => {
    const startedAt = performance.now()

    const { stopReason } = await resultOf({ delayMs: 30 })

    expect(stopReason).toBe('completed')
    expect(performance.now() - startedAt).toBeGreaterThan(25)
  })

  test('scripts a start that throws before there is a child', async () => {
    const { ctx, parent } = await boot({ failure: 'throws-at-start' })
    const mock = ctx.subagents.getProvider('mock') as MockProvider

    expect(() => ctx.subagents.start('mock', { prompt: 'go', parent })).toThrow(/does not start/)

    expect(mock.alive.size).toBe(0)
    expect(ctx.subagents.runs()).toEqual([])
  })

  test('scripts a child that never ends by itself, and keeps what it had said', async () => {
    const { ctx, parent } = await boot({ reply: 'so far', hang: true })
    const mock = ctx.subagents.getProvider('mock') as MockProvider
    const run = ctx.subagents.start('mock', { prompt: 'go', parent })
    expect([...mock.alive]).toEqual([run.id])

    run.cancel('enough')

    expect(await run.result).toEqual({
      output: [{ type: 'text', text: 'so far' }],
      stopReason: 'aborted',
      diagnostic: 'enough',
    })
    expect(mock.alive.size).toBe(0)
  })

  test('scripts a child that ignores a cancel and goes when it is disposed', async () => {
    const { ctx, parent } = await boot({ hang: true, deaf: true })
    const mock = ctx.subagents.getProvider('mock') as MockProvider
    const run = ctx.subagents.start('mock', { prompt: 'go', parent })

    run.cancel()

    expect((await run.result).stopReason).toBe('aborted')
    expect(mock.alive.size).toBe(1)
    await run.dispose()
    expect(mock.alive.size).toBe(0)
    expect(mock.disposed).toEqual([run.id])
  })

  test.each([
    ['failure', 'sometimes'],
    ['delayMs', 1.5],
    ['hang', 'yes'],
  ])('refuses a wrong %s and names the key', async (key, value) => {
    const ctx = await bootYml(
      `
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
`,
      { expectErrors: new RegExp(key) },
    )
    const errors = collectErrors(ctx)

    await ctx.loader.create({
      name: '@deepseek-ai/dsh-subagent-mock',
      config: { [key]: value },
    })
    await ctx.loader.await()

    expect(errors.join()).toContain(key)
    expect(ctx.subagents.list()).toEqual([])
  })
})
