/** What of the guide can be tested without the agents that it is about. */
import { readdirSync, readFileSync } from 'node:fs'
import { bootYml } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { blockOf, sections } from './guide.ts'

const [host = '', ...agents] = sections

describe('the guide to agents of others', () => {
  test.each(agents)('has a yml for %s that gives the host a tool', async (section) => {
    onTestFinished(() => void vi.unstubAllEnvs())
    for (const name of blockOf(section, 'yaml').matchAll(/process\.env\.(\w+)/g)) {
      vi.stubEnv(name[1] ?? '', 'a value')
    }
    vi.stubEnv('DEEPSEEK_API_KEY', 'a key')

    const ctx = await bootYml(`${blockOf(host, 'yaml')}${blockOf(section, 'yaml')}`)

    const { provider, toolName } =
      /provider: (?<provider>\w+), toolName: (?<toolName>\w+)/.exec(blockOf(section, 'yaml'))
        ?.groups ?? {}
    const { agent } = ctx.agents.create({ cwd: '/' })
    expect(ctx.subagents.list()).toEqual([provider])
    expect(ctx.tools.schemas(agent).map(({ name }) => name)).toEqual([toolName])
  })

  test('has no yml without a test that runs it', () => {
    const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.agents.ts'))
    const tested = files.flatMap((name) => {
      const text = readFileSync(new URL(name, import.meta.url), 'utf8')
      return Array.from(text.matchAll(/section: '(.+)'/g), ([, section]) => section)
    })

    expect(new Set(tested)).toEqual(new Set(agents))
  })
})
