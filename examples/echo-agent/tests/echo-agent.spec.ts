import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Context } from '@deepseek-ai/cordis'
import Include from '@deepseek-ai/cordis-plugin-include'
import Loader from '@deepseek-ai/cordis-plugin-loader'
import { testContext } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'

const execFileAsync = promisify(execFile)
const dsh = fileURLToPath(new URL('bin.ts', import.meta.resolve('@deepseek-ai/dsh')))
const config = fileURLToPath(new URL('../cordis.yml', import.meta.url))

describe('echo-agent', () => {
  test('answers on the command line', async () => {
    const { stdout } = await execFileAsync(process.execPath, [dsh, config, '-p', 'hello'])

    expect(stdout).toBe('The tool said: hello\n')
  }, 60_000)

  test('calls its own tool with what it is told, and tells what came back', async () => {
    const ctx = await bootWithoutTerminal()
    const { agent } = ctx.agents.create({ cwd: '/' })

    const end = await agent.send('hello {{world}}')

    expect(end).toEqual({ reason: 'completed' })
    const results = [...agent.session.events()].filter(({ type }) => type === 'tool/result')
    expect(results).toMatchObject([{ data: { name: 'echo', isError: false } }])
    expect(agent.session.deriveMessages().at(-1)?.content).toEqual([
      { type: 'text', text: 'The tool said: hello {{world}}' },
    ])
  })
})

/** Boots the example's own yml; only the front end stays out, which takes over stdin. */
async function bootWithoutTerminal(): Promise<Context> {
  const ctx = testContext()
  ctx.baseUrl = new URL('..', import.meta.url).href
  await ctx.plugin(Loader)
  ctx.loader.builtins.include = Include
  const patches = [{ id: 'terminal', disabled: true }]
  await ctx.loader.create({
    name: 'cordis:include',
    config: { path: './cordis.yml', patches },
  })
  await ctx.loader.await()
  return ctx
}
