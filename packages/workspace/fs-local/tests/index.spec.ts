import { stat } from 'node:fs/promises'
import { bootYml, collectErrors, testContext } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import FsService from '../src/index.ts'
import { anyRange, createAgent, failureOf } from './helpers.ts'

describe('FsService', () => {
  test('is loaded from a yml, with its config', async () => {
    const ctx = await bootYml(`
      - name: '@deepseek-ai/dsh-fs-local'
        config:
          maxFileBytes: 5
    `)
    const agent = await createAgent({ 'a.txt': '123456' })

    expect(await failureOf(ctx.fs.read(agent, 'a.txt', anyRange))).toContain('the limit is 5')
    expect(await ctx.fs.write(agent, 'b.txt', '12345')).toMatchObject({ isNew: true })
  })

  test('is one for each context: a second load fails and the first goes on', async () => {
    const ctx = testContext({ expectErrors: /fs/ })
    await ctx.plugin(FsService)
    const agent = await createAgent({ 'a.txt': 'a' })

    await expect(ctx.plugin(FsService)).rejects.toThrow('fs')

    expect(await ctx.fs.read(agent, 'a.txt', anyRange)).toMatchObject({ lines: ['a'] })
  })

  test('goes with the plugin that loaded it', async () => {
    const ctx = testContext()
    const fiber = await ctx.plugin(FsService)

    await fiber.dispose()

    expect(ctx.get('fs')).toBeUndefined()
  })

  test.each([
    [{ extraRoots: ['some/folder'] }, 'extraRoots has "some/folder": use an absolute path'],
    [{ extraRoots: [null] as never }, 'extraRoots[0]'],
    [{ maxFileBytes: 0 }, 'maxFileBytes'],
    [{ searchTimeoutMs: 1.5 }, 'searchTimeoutMs'],
  ])('refuses the config %j', async (config, message) => {
    const ctx = testContext({ expectErrors: /./ })
    const errors = collectErrors(ctx)

    await expect(ctx.plugin(FsService, config)).rejects.toThrow(message)

    expect(errors.length).toBeLessThanOrEqual(1)
  })

  test('uses the workspace as it was given, whatever the cwd of the process is', async () => {
    const ctx = testContext()
    await ctx.plugin(FsService)
    const agent = await createAgent()

    await ctx.fs.write(agent, 'here.txt', 'x')

    expect((await stat(`${agent.cwd}/here.txt`)).size).toBe(1)
  })
})
