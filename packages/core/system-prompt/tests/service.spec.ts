import type { Context } from '@deepseek-ai/cordis'
import type { SessionId } from '@deepseek-ai/dsh-session'
import { bootYml, testContext } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import * as systemPrompt from '../src/index.ts'
import SystemPromptService, { type PromptAgent } from '../src/index.ts'

const agent = { id: 'agent' as SessionId, model: 'large', cwd: '/work' } as PromptAgent

describe('SystemPromptService', () => {
  test('puts the persona of the yml before every other section', async () => {
    const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-system-prompt'
  config:
    persona: You are {{model}}, a careful engineer.
`)

    ctx.systemPrompt.register({ name: 'workspace', text: 'You work in {{cwd}}.' })

    expect(ctx.systemPrompt.assemble(agent)).toBe(
      'You are large, a careful engineer.\n\nYou work in /work.',
    )
  })

  test('has no section when the yml sets no persona', async () => {
    const ctx = await bootYml(`- name: '@deepseek-ai/dsh-system-prompt'`)

    expect(ctx.systemPrompt.assemble(agent)).toBe('')
  })

  test('fails to load with an unknown variable in the persona', async () => {
    const ctx = testContext({ expectErrors: /unknown variable/ })

    const load = ctx.plugin(SystemPromptService, { persona: 'in {{folder}}' })

    await expect(load).rejects.toThrow(
      'prompt section "persona" has an unknown variable "{{folder}}"',
    )
  })

  test('is what the Loader takes from the module', async () => {
    const ctx = await bootYml('[]')

    const plugin = ctx.loader.unwrapExports(systemPrompt) as typeof SystemPromptService

    expect(plugin).toBe(SystemPromptService)
    expect(plugin.Config({})).toEqual({ persona: '' })
  })

  test('keeps one section over twenty reloads of the plugin that registered it', async () => {
    const ctx = testContext()
    await ctx.plugin(SystemPromptService)
    const fiber = await ctx.inject(['systemPrompt'], (child: Context) => {
      child.systemPrompt.register({ name: 'a', text: 'a' })
    })

    for (let reload = 0; reload < 20; reload += 1) await fiber.restart()
    const loaded = ctx.systemPrompt.assemble(agent)
    await fiber.dispose()

    expect(loaded).toBe('a')
    expect(ctx.systemPrompt.assemble(agent)).toBe('')
  })
})
