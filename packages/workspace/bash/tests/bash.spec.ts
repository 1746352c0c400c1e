import { describe, expect, test } from 'vitest'
import { bootYml, testContext } from '@deepseek-ai/dsh-testkit'
import { type BashExecutor, provideBash } from '../src/index.ts'

function createExecutor(name: string): BashExecutor {
  return {
    name,
    timeoutMs: 1,
    maxTimeoutMs: 1,
    execute: async () => ({
      output: name,
      isTruncated: false,
      isTimedOut: false,
      isAborted: false,
      durationMs: 0,
    }),
  }
}

describe('provideBash', () => {
  test('makes an executor ctx.bash, and takes it back with its plugin', async () => {
    const ctx = testContext()
    const fiber = await ctx.plugin({ apply: (own) => provideBash(own, createExecutor('one')) })

    const result = await ctx.bash.execute({ command: '', cwd: '/' })

    expect(result.output).toBe('one')
    await fiber.dispose()
    expect(ctx.get('bash')).toBeUndefined()
  })

  test('refuses a second executor and keeps the first', async () => {
    const ctx = testContext({ expectErrors: /cannot be loaded/ })
    await ctx.plugin({ apply: (own) => provideBash(own, createExecutor('one')) })

    const second = ctx.plugin({ apply: (own) => provideBash(own, createExecutor('two')) })

    await expect(second).rejects.toMatchObject({
      name: 'BashError',
      code: 'DUPLICATE_EXECUTOR',
      message: expect.stringMatching(/"two" cannot be loaded: "one" is already there/),
    })
    expect(ctx.bash.name).toBe('one')
  })

  test('lets a context that is isolated have an executor of its own', async () => {
    const ctx = testContext()
    const inner = ctx.isolate('bash')
    await ctx.plugin({ apply: (own) => provideBash(own, createExecutor('one')) })

    await inner.plugin({ apply: (own) => provideBash(own, createExecutor('two')) })

    expect([ctx.bash.name, inner.bash.name]).toEqual(['one', 'two'])
  })

  test('refuses the second of two entries of a yml', async () => {
    const ctx = await bootYml(
      `
- name: '@deepseek-ai/dsh-bash-local'
- name: '@deepseek-ai/dsh-bash-local'
`,
      { expectErrors: /BashError: bash executor "bash-local" cannot be loaded/ },
    )

    const result = await ctx.bash.execute({ command: 'echo ok', cwd: '/' })

    expect(result.output).toBe('ok\n')
  })
})
