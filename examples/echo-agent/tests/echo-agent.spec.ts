import type { Context } from '@deepseek-ai/cordis'
import Include from '@deepseek-ai/cordis-plugin-include'
import Loader from '@deepseek-ai/cordis-plugin-loader'
import { testContext } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'

describe('echo-agent', () => {
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
