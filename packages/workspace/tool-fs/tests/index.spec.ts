import { bootYml, testContext } from '@deepseek-ai/dsh-testkit'
import FsService from '@deepseek-ai/dsh-fs-local'
import LlmService from '@deepseek-ai/dsh-llm'
import ToolService from '@deepseek-ai/dsh-tools'
import { describe, expect, test } from 'vitest'
import * as toolFs from '../src/index.ts'
import { bootTools } from './helpers.ts'

describe('the plugin', () => {
  test('registers all five tools unless told which', async () => {
    const all = await bootTools()
    const some = await bootTools('{ tools: [read, grep] }')

    expect(all.tools.table.names().toSorted()).toEqual(['edit', 'glob', 'grep', 'read', 'write'])
    expect(some.tools.table.names().toSorted()).toEqual(['grep', 'read'])
  })

  test.each([
    [{ tools: [] }, '"tools" is empty'],
    [{ tools: null as never }, '"tools" is empty'],
    [{ tools: ['read', null] as never }, 'tools[1]'],
    [{ tools: ['remove'] as never }, 'remove'],
    [{ maxBytes: 10 }, 'maxBytes'],
    [{ maxLines: 0.5 }, 'maxLines'],
  ])('refuses the config %j', async (config, message) => {
    const ctx = testContext({ expectErrors: /./ })
    await Promise.all([ctx.plugin(ToolService), ctx.plugin(LlmService), ctx.plugin(FsService)])

    await expect(ctx.plugin(toolFs, config)).rejects.toThrow(message)

    expect(ctx.tools.table.names()).toEqual([])
  })

  test('tells the model what each argument means, and no more than it must give', async () => {
    const ctx = await bootTools()

    const schemas = ctx.tools.table.schemas({} as never)

    const shapes = schemas.map(({ name, parameters }) => [
      name,
      Object.keys(parameters['properties'] as object),
      parameters['required'],
    ])
    expect(shapes).toEqual([
      ['edit', ['path', 'oldText', 'newText', 'replaceAll'], ['path', 'oldText', 'newText']],
      ['glob', ['pattern', 'path'], ['pattern']],
      ['grep', ['pattern', 'path', 'glob', 'ignoreCase'], ['pattern']],
      ['read', ['path', 'offset', 'limit'], ['path']],
      ['write', ['path', 'content'], ['path', 'content']],
    ])
  })

  test('waits for file access, and goes and comes with it', async () => {
    const ctx = testContext()
    await Promise.all([ctx.plugin(ToolService), ctx.plugin(LlmService), ctx.plugin(toolFs)])
    const before = ctx.tools.table.names()

    const counts: number[] = []
    for (let i = 0; i < 20; i += 1) {
      const fiber = await ctx.plugin(FsService)
      counts.push(ctx.tools.table.names().length)
      await fiber.dispose()
      counts.push(ctx.tools.table.names().length)
    }

    expect(before).toEqual([])
    expect(counts).toEqual(Array.from({ length: 20 }, () => [5, 0]).flat())
  })

  test('fails loudly when a tool of its name is there, and leaves that one alone', async () => {
    const ctx = await bootYml(
      `
      - name: '@deepseek-ai/dsh-agent-core'
      - name: '@deepseek-ai/dsh-fs-local'
      - name: '@deepseek-ai/dsh-tool-fs'
        config: { tools: [read] }
      - name: '@deepseek-ai/dsh-tool-fs'
        config: { tools: [read] }
      `,
      { expectErrors: /tool "read" is already registered/ },
    )

    expect(ctx.tools.table.names()).toEqual(['read'])
  })
})
