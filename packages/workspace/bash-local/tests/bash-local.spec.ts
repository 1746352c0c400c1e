import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bootYml, temporaryFolder, testContext, waitFor } from '@deepseek-ai/dsh-testkit'
import * as bashLocal from '../src/index.ts'
import { isAlive, leftovers, pidsIn, setTemporaryFolder } from './helpers.ts'

describe('bash-local', () => {
  test('is loaded from a yml, with what is omitted at its default', async () => {
    const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-bash-local'
  config:
    timeoutMs: 5000
    env:
      WORD: hello
`)

    const result = await ctx.bash.execute({ command: 'echo $WORD $BASH_VERSION', cwd: '/' })

    expect(result.output).toMatch(/^hello \d/)
    expect([ctx.bash.timeoutMs, ctx.bash.maxTimeoutMs]).toEqual([5000, 600_000])
  })

  test.each([
    ['timeoutMs: 0', /timeoutMs/],
    ['graceMs: soon', /graceMs/],
    ['env: { WORD: null }', /env\.WORD/],
    ['maxOutputBytes: 99', /maxOutputBytes/],
    ['timeoutMs: 700000', /timeoutMs "700000" must not be above maxTimeoutMs "600000"/],
    ['shell: /no/shell', /shell "\/no\/shell" must be the absolute path/],
  ])('refuses the config "%s"', async (line, message) => {
    const ctx = await bootYml(
      `
- name: '@deepseek-ai/dsh-bash-local'
  config:
    ${line}
`,
      { expectErrors: message },
    )

    expect(ctx.get('bash')).toBeUndefined()
  })

  test('leaves one executor, no process and no file after twenty reloads', async () => {
    const folder = await temporaryFolder()
    setTemporaryFolder(folder)
    const ctx = testContext()
    let fiber = await ctx.plugin(bashLocal, {})
    await ctx.bash.execute({ command: 'true', cwd: '/' })
    const before = leftovers()

    for (let count = 0; count < 20; count += 1) {
      await ctx.bash.execute({ command: 'seq 10000', cwd: '/' })
      expect(readdirSync(folder)).toHaveLength(1)
      const running = ctx.bash.execute({ command: 'sleep 1000', cwd: '/' })
      await fiber.dispose()
      expect(await running).toMatchObject({ isAborted: true })
      fiber = await ctx.plugin(bashLocal, {})
    }

    expect(ctx.bash.name).toBe('bash-local')
    expect(leftovers()).toEqual(before)
    expect(readdirSync(folder)).toEqual([])
  }, 30_000)

  test('leaves no process when its host is killed by SIGKILL', async () => {
    const host = spawn(process.execPath, [
      fileURLToPath(new URL('fixtures/host.ts', import.meta.url)),
    ])
    onTestFinished(() => void host.kill('SIGKILL'))
    let text = ''
    host.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await waitFor('three pids', () => pidsIn(text).length === 3)
    const pids = pidsIn(text)
    expect(pids.filter(isAlive)).toEqual(pids)

    host.kill('SIGKILL')

    await waitFor('an empty tree', () => !pids.some(isAlive))
  }, 20_000)
})
