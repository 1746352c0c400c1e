import type { Context } from '@deepseek-ai/cordis'
import { bootYml, testContext } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import * as tools from '../src/index.ts'
import ToolService, { errorResult, textResult, ToolError, type ToolResult } from '../src/index.ts'
import { createAgent, createCall, createTool, textOf } from './helpers.ts'

async function createService(): Promise<Context> {
  const ctx = testContext()
  await ctx.plugin(ToolService)
  return ctx
}

describe('ToolService', () => {
  test('runs a tool that a plugin of the yml registered', async () => {
    const ctx = await bootYml(`- name: '@deepseek-ai/dsh-tools'`)
    ctx.tools.register({
      name: 'add',
      description: 'Adds two numbers.',
      parameters: z.object({ a: z.number(), b: z.number() }),
      execute: async ({ a, b }) => `${a + b}`,
    })
    const agent = createAgent()

    const result = await ctx.tools.execute(createCall({ name: 'add', input: { a: 1, b: 2 } }))

    expect(result).toEqual({ content: [{ type: 'text', text: '3' }], isError: false })
    expect(ctx.tools.schemas(agent).map(({ name }) => name)).toEqual(['add'])
    expect(ctx.tools.visible(agent).map(({ name }) => name)).toEqual(['add'])
  })

  test('is what the Loader takes from the module', async () => {
    const ctx = await bootYml('[]')

    expect(ctx.loader.unwrapExports(tools)).toBe(ToolService)
  })

  test('forgets a tool when the plugin that registered it is disposed', async () => {
    const ctx = await createService()
    const fiber = await ctx.inject(['tools'], (child: Context) => {
      child.tools.register(createTool())
    })
    const before = ctx.tools.schemas(createAgent())

    await fiber.dispose()

    expect(before).toHaveLength(1)
    expect(ctx.tools.schemas(createAgent())).toEqual([])
    expect(await ctx.tools.execute(createCall())).toMatchObject({ code: 'UNKNOWN_TOOL' })
  })

  test('forgets a tool early by the disposer, which may be called twice', async () => {
    const ctx = await createService()
    const dispose = ctx.tools.register(createTool())

    await dispose()
    ctx.tools.register(createTool())
    await dispose()

    expect(ctx.tools.visible(createAgent())).toHaveLength(1)
  })

  test('fails the second plugin with a name, and the first keeps working', async () => {
    const ctx = testContext({ expectErrors: /tool "echo" is already registered/ })
    await ctx.plugin(ToolService)
    ctx.tools.register(createTool())

    const second = ctx.inject(['tools'], (child: Context) => {
      child.tools.register(createTool({ execute: async () => 'second' }))
    })

    await expect(second).rejects.toThrow(ToolError)
    expect(textOf(await ctx.tools.execute(createCall()))).toBe('hello!')
  })

  test('tells listeners of the progress of a call', async () => {
    const ctx = await createService()
    const told: unknown[] = []
    ctx.on('tools/progress', ({ call, progress }) => void told.push([call.callId, progress]))
    ctx.tools.register(
      createTool({
        execute: async (_, { update }) => {
          update({ text: 'reading' })
          return 'done'
        },
      }),
    )

    await ctx.tools.execute(createCall())

    expect(told).toEqual([['call', { text: 'reading' }]])
  })
})

/** A listener that puts a mark on both sides of a result. */
const surround =
  (mark: string) =>
  async (_: unknown, next: () => Promise<ToolResult>): Promise<ToolResult> =>
    textResult(`${mark}${textOf(await next())}${mark}`)

describe('tools/execute', () => {
  test('lets a listener refuse a call, which then never runs', async () => {
    const ctx = await createService()
    let runs = 0
    ctx.tools.register(createTool({ execute: async () => `${(runs += 1)}` }))
    ctx.on('tools/execute', async ({ name }) => errorResult('REFUSED', `no ${name} today`))

    const result = await ctx.tools.execute(createCall())

    expect(result).toEqual({
      content: [{ type: 'text', text: 'no echo today' }],
      isError: true,
      code: 'REFUSED',
    })
    expect(runs).toBe(0)
  })

  test('lets a listener change the input, which is checked afterwards', async () => {
    const ctx = await createService()
    ctx.tools.register(createTool())
    const words: unknown[] = ['rewritten', 7]
    ctx.on('tools/execute', (call, next) => {
      call.input = { word: words.shift() as string }
      return next()
    })

    const results = [await ctx.tools.execute(createCall()), await ctx.tools.execute(createCall())]

    expect(textOf(results[0]!)).toBe('rewritten!')
    expect(results[1]).toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test('lets listeners wrap the result, the first one outermost', async () => {
    const ctx = await createService()
    ctx.tools.register(createTool())
    ctx.on('tools/execute', surround('*'))
    ctx.on('tools/execute', surround('_'))

    const result = await ctx.tools.execute(createCall())

    expect(textOf(result)).toBe('*_hello!_*')
  })

  test('makes an error of a listener that throws', async () => {
    const ctx = await createService()
    ctx.tools.register(createTool())
    ctx.on('tools/execute', () => {
      throw new Error('the policy is broken')
    })

    const result = await ctx.tools.execute(createCall())

    expect(result).toMatchObject({ isError: true, code: 'TOOL_FAILED' })
    expect(textOf(result)).toContain('the policy is broken')
  })

  test('keeps one tool and one listener over twenty reloads of their plugin', async () => {
    const ctx = await createService()
    const fiber = await ctx.inject(['tools'], (child: Context) => {
      child.tools.register(createTool())
      child.on('tools/execute', async (_, next) => textResult(`<${textOf(await next())}>`))
    })

    for (let reload = 0; reload < 20; reload += 1) await fiber.restart()

    expect(ctx.tools.visible(createAgent())).toHaveLength(1)
    expect(ctx.events._hooks['tools/execute']).toHaveLength(1)
    expect(textOf(await ctx.tools.execute(createCall()))).toBe('<hello!>')
  })
})
