import type { SessionId } from '@deepseek-ai/dsh-session'
import { describe, expect, test } from 'vitest'
import { bootYml, testContext } from '@deepseek-ai/dsh-testkit'
import {
  type BashExecutor,
  type BashResult,
  provideBash,
  type TimedBashRequest,
} from '../src/index.ts'

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

describe('bash/execute', () => {
  const elsewhere: BashResult = {
    output: 'elsewhere',
    isTruncated: false,
    isTimedOut: false,
    isAborted: false,
    durationMs: 0,
  }

  test('lets a listener run a command elsewhere, until it goes', async () => {
    const ctx = testContext()
    const requests: TimedBashRequest[] = []
    await ctx.plugin({ apply: (own) => provideBash(own, createExecutor('here')) })
    const listener = await ctx.plugin({
      apply: (own) =>
        void own.on('bash/execute', (request, next) => {
          requests.push(request)
          return request.caller === undefined ? next() : Promise.resolve(elsewhere)
        }),
    })
    const caller = { sessionId: 's' as SessionId }

    const results = [
      await ctx.bash.execute({ command: '', cwd: '/', caller }),
      await ctx.bash.execute({ command: '', cwd: '/' }),
    ]
    await listener.dispose()
    results.push(await ctx.bash.execute({ command: '', cwd: '/', caller }))

    expect(results.map(({ output }) => output)).toEqual(['elsewhere', 'here', 'here'])
    expect(requests.map(({ timeoutMs }) => timeoutMs)).toEqual([1, 1])
  })

  test.each([0, -1, 2, Number.NaN])('is spared the time limit %s', async (timeoutMs) => {
    const ctx = testContext()
    await ctx.plugin({ apply: (own) => provideBash(own, createExecutor('here')) })
    let isAsked = false
    ctx.on('bash/execute', (_, next) => {
      isAsked = true
      return next()
    })

    const executing = ctx.bash.execute({ command: '', cwd: '/', timeoutMs })

    await expect(executing).rejects.toMatchObject({ code: 'INVALID_TIMEOUT' })
    expect(isAsked).toBe(false)
  })
})
