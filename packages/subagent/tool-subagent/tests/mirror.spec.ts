import type { Context } from '@deepseek-ai/cordis'
import * as agentCore from '@deepseek-ai/dsh-agent-core'
import SubagentService from '@deepseek-ai/dsh-subagent'
import { createMockProvider } from '@deepseek-ai/dsh-subagent-mock'
import {
  bootYml,
  collectWarnings,
  gate,
  scriptedModel,
  testContext,
} from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import * as plugin from '../src/index.ts'
import { call, core, countListeners, entry, fiberOf, textOf } from './helpers.ts'

const mock = entry('subagent-mock')
const tool = entry('tool-subagent', { provider: 'mock' })

function descriptionOf(ctx: Context, name = 'subagent'): string | undefined {
  const found = ctx.tools.table.lookup({ id: 'nobody' } as never, name)
  return found.kind === 'found' ? found.tool.description : undefined
}

describe('the tool', () => {
  test.each([
    ['before', core + mock + tool],
    ['after', core + tool + mock],
    ['before everything else, the tool last but one,', mock + tool + core],
  ])('is there when the provider is loaded %s it', async (_, yml) => {
    const ctx = await bootYml(yml)

    expect(ctx.tools.table.names()).toEqual(['subagent'])
  })

  test('comes and goes with its provider, without delay', async () => {
    const ctx = await bootYml(core + tool)
    expect(ctx.tools.table.names()).toEqual([])

    const remove = ctx.subagents.registerProvider(createMockProvider())
    expect(ctx.tools.table.names()).toEqual(['subagent'])

    void remove()
    expect(ctx.tools.table.names()).toEqual([])
  })

  test('does not heed other providers', async () => {
    const ctx = await bootYml(core + mock + tool)

    const remove = ctx.subagents.registerProvider(createMockProvider({ name: 'other' }))
    expect(ctx.tools.table.names()).toEqual(['subagent'])

    await remove()
    expect(ctx.tools.table.names()).toEqual(['subagent'])
  })

  test('takes its wording from the provider that is there now', async () => {
    const ctx = await bootYml(core + tool)
    const remove = ctx.subagents.registerProvider(createMockProvider())
    expect(descriptionOf(ctx)).toContain('sees nothing of this conversation')

    await remove()
    ctx.subagents.registerProvider(createMockProvider({ inheritsParentContext: true }))

    expect(descriptionOf(ctx)).toContain('already sees this conversation')
  })

  test('goes with its own entry, and leaves the provider alone', async () => {
    const ctx = await bootYml(core + mock + tool)

    await fiberOf(ctx, 'tool-subagent').dispose()

    expect(ctx.tools.table.names()).toEqual([])
    expect(ctx.subagents.list()).toEqual(['mock'])
  })

  test.each(['subagent-mock', 'tool-subagent', 'dsh-subagent'])(
    'is one, with one provider and as many listeners as before, after twenty reloads of %s',
    async (name) => {
      const ctx = await bootYml(core + mock + tool)
      ctx.llm.registerAdapter(scriptedModel([]))
      await fiberOf(ctx, name).restart()
      await ctx.loader.await()
      const listeners = countListeners(ctx)

      for (let count = 0; count < 20; count += 1) {
        await fiberOf(ctx, name).restart()
        await ctx.loader.await()
      }

      expect(ctx.tools.table.names()).toEqual(['subagent'])
      expect(ctx.subagents.list()).toEqual(['mock'])
      expect(countListeners(ctx)).toBe(listeners)
      const { agent: parent } = ctx.agents.create({ cwd: '/' })
      expect(textOf(await call({ ctx, parent }))).toContain('\ndone\n')
    },
  )
})

describe('a provider that is not there', () => {
  test('is warned of once when loading has settled, with the known ones', async () => {
    const ctx = await bootYml(core + entry('subagent-mock', { providerName: 'spawn' }))
    const warnings = collectWarnings(ctx)

    await ctx.loader.create({
      name: '@deepseek-ai/dsh-tool-subagent',
      config: { provider: 'spawm' },
    })
    await ctx.loader.await()
    await fiberOf(ctx, 'subagent-mock').restart()
    await ctx.loader.await()

    expect(warnings).toEqual([
      'no subagent provider "spawm" (registered: spawn): its tool is missing until one of that name is loaded',
    ])
  })

  test('is not warned of while it may still come', async () => {
    const ctx = await bootYml(core)
    const warnings = collectWarnings(ctx)

    await Promise.all([
      ctx.loader.create({ name: '@deepseek-ai/dsh-tool-subagent', config: { provider: 'mock' } }),
      ctx.loader.create({ name: '@deepseek-ai/dsh-subagent-mock' }),
    ])
    await ctx.loader.await()

    expect(ctx.tools.table.names()).toEqual(['subagent'])
    expect(warnings).toEqual([])
  })

  test('is not warned of by a tool that has gone meanwhile', async () => {
    const held = gate()
    const hold = { [Symbol.for('test.hold')]: held.opened }
    Object.assign(globalThis, hold)
    const slow = `export async function apply() { await globalThis[Symbol.for('test.hold')] }`
    const ctx = await bootYml(core, { files: { 'slow.ts': slow } })
    const warnings = collectWarnings(ctx)
    await ctx.loader.create({ name: './slow.ts' })

    const id = await ctx.loader.create({
      name: '@deepseek-ai/dsh-tool-subagent',
      config: { provider: 'mock' },
    })
    await ctx.loader.resolve(id).fiber?.await()
    await ctx.loader.resolve(id).fiber?.dispose()
    expect(ctx.loader.getTasks()).toHaveLength(1)
    held.open()
    await ctx.loader.await()

    expect(warnings).toEqual([])
  })

  test('is waited for in silence where there is no Loader', async () => {
    const ctx = testContext()
    const warnings = collectWarnings(ctx)
    await Promise.all([ctx.plugin(agentCore, {}), ctx.plugin(SubagentService)])

    await ctx.plugin(plugin, { provider: 'mock' })
    expect(ctx.tools.table.names()).toEqual([])

    ctx.subagents.registerProvider(createMockProvider())
    expect(ctx.tools.table.names()).toEqual(['subagent'])
    expect(warnings).toEqual([])
  })
})

describe('the second tool of one name', () => {
  const expectErrors = /tool "subagent" is already registered/
  const other = entry('subagent-mock', { providerName: 'other', reply: 'other' })

  test('fails its load, and the first keeps working', async () => {
    const ctx = await bootYml(core + mock + other + tool, { expectErrors })
    ctx.llm.registerAdapter(scriptedModel([]))

    const id = await ctx.loader.create({
      name: '@deepseek-ai/dsh-tool-subagent',
      config: { provider: 'other' },
    })

    await expect(ctx.loader.resolve(id).fiber?.await()).rejects.toThrow(expectErrors)
    const { agent: parent } = ctx.agents.create({ cwd: '/' })
    expect(textOf(await call({ ctx, parent }))).toContain('\ndone\n')
  })

  test('fails its load also when its provider comes later, and the provider stays', async () => {
    const yml = core + mock + tool + entry('tool-subagent', { provider: 'other' })
    const ctx = await bootYml(yml, { expectErrors })
    ctx.llm.registerAdapter(scriptedModel([]))

    const id = await ctx.loader.create({
      name: '@deepseek-ai/dsh-subagent-mock',
      config: { providerName: 'other' },
    })
    await ctx.loader.await()

    expect(ctx.loader.resolve(id).fiber?.getEffects()).toHaveLength(1)
    expect(ctx.subagents.list()).toEqual(['mock', 'other'])
    const failed = [...ctx.loader.entries()].find(
      ({ options }) => options.config?.provider === 'other',
    )
    await expect(failed?.fiber?.await()).rejects.toThrow(expectErrors)
    const { agent: parent } = ctx.agents.create({ cwd: '/' })
    expect(textOf(await call({ ctx, parent }))).toContain('\ndone\n')
  })

  test('fails its load also when its provider comes in the middle of it', async () => {
    const ctx = await bootYml(core + mock + tool, { expectErrors })
    const stop = ctx.on('internal/listener', (name) => {
      if (name !== 'subagent/provider-added') return
      stop()
      queueMicrotask(() => ctx.subagents.registerProvider(createMockProvider({ name: 'other' })))
    })

    const id = await ctx.loader.create({
      name: '@deepseek-ai/dsh-tool-subagent',
      config: { provider: 'other' },
    })
    await ctx.loader.await()

    await expect(ctx.loader.resolve(id).fiber?.await()).rejects.toThrow(expectErrors)
    expect(ctx.subagents.list()).toEqual(['mock', 'other'])
  })

  test('works beside the first under a name of its own', async () => {
    const second = entry('tool-subagent', { provider: 'other', toolName: 'subagent_other' })

    const ctx = await bootYml(core + mock + other + tool + second)
    ctx.llm.registerAdapter(scriptedModel([]))

    const { agent: parent } = ctx.agents.create({ cwd: '/' })
    const result = await call({ ctx, parent }, undefined, { name: 'subagent_other' })
    expect(textOf(result)).toContain('\nother\n')
    expect(textOf(await call({ ctx, parent }))).toContain('\ndone\n')
  })
})
