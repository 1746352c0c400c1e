import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startModelServer } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { bootWith, copyOfExample, runDsh, type Variables } from './helpers.ts'

describe('cordis.yml', () => {
  test.each<[string, Variables, string, string[]]>([
    [
      'DEEPSEEK_API_KEY',
      { DEEPSEEK_API_KEY: 'k' },
      'deepseek-v4-pro',
      ['deepseek-v4-pro', 'deepseek-v4-flash'],
    ],
    ['OPENAI_API_KEY', { OPENAI_API_KEY: 'k' }, 'gpt-5.2', ['gpt-5.2']],
    [
      'OPENAI_BASE_URL and OPENAI_MODEL',
      { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_MODEL: 'local' },
      'local',
      ['local'],
    ],
    [
      'ANTHROPIC_API_KEY',
      { ANTHROPIC_API_KEY: 'k' },
      'claude-sonnet-4-5',
      ['claude-sonnet-4-5', 'claude-opus-4-5', 'claude-haiku-4-5'],
    ],
    [
      'all keys, DeepSeek first',
      { DEEPSEEK_API_KEY: 'k', OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' },
      'deepseek-v4-pro',
      [
        'claude-haiku-4-5',
        'claude-opus-4-5',
        'claude-sonnet-4-5',
        'deepseek-v4-flash',
        'deepseek-v4-pro',
        'gpt-5.2',
      ],
    ],
  ])('serves the models of %s', async (_, env, chosen, models) => {
    const ctx = await bootWith(env)

    const { agent } = ctx.agents.create({ cwd: '/' })

    expect(agent.model).toBe(chosen)
    expect(namesOf(ctx.llm.models())).toEqual(models.toSorted())
  })

  test('gives its agents a shell, files and children', async () => {
    const ctx = await bootWith({ DEEPSEEK_API_KEY: 'k' })

    const { agent } = ctx.agents.create({ cwd: '/' })

    expect(namesOf(ctx.tools.schemas(agent))).toEqual([
      'bash',
      'edit',
      'glob',
      'grep',
      'read',
      'subagent',
      'subagent_acp',
      'subagent_fork',
      'write',
    ])
  })

  test('drives an OpenAI-compatible endpoint, which delegates to a child that reads a file', async () => {
    const server = await startModelServer(({ messages }) => {
      const last = messages.at(-1)
      if (last?.text === 'which package?') {
        const input = { description: 'read it', prompt: 'read package.json' }
        return { text: 'I ask.', calls: [{ name: 'subagent', input }] }
      }
      if (last?.text === 'read package.json') {
        return { calls: [{ name: 'read', input: { path: 'package.json' } }] }
      }
      return `it is ${/price-tags/.exec(last?.text ?? '')?.[0]}`
    })
    const copy = await copyOfExample()

    const { code, stdout, stderr } = await runDsh(copy, ['cordis.yml', '-p', 'which package?'], {
      OPENAI_BASE_URL: server.baseURL,
      OPENAI_API_KEY: 'key-of-the-test',
      OPENAI_MODEL: 'local-model',
    })

    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(stdout).toContain('it is price-tags')
    const [first] = server.requests
    expect(first?.model).toBe('local-model')
    expect(first?.headers.authorization).toBe('Bearer key-of-the-test')
    expect(first?.system).toContain('You run on the model local-model')
    expect(first?.system).toContain('/examples/coding-agent/broken-project through tools')
    expect(server.requests).toHaveLength(4)
  }, 60_000)

  test('delegates to a child in another process, which writes a file by its own model', async () => {
    const server = await startModelServer(({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool') return `done: ${last.text}`
      if (last?.text === 'have it written') {
        const input = { description: 'write it', prompt: 'write it' }
        return { calls: [{ name: 'subagent_acp', input }] }
      }
      return { calls: [{ name: 'bash', input: { command: 'echo it > written; echo I did' } }] }
    })
    const copy = await copyOfExample()

    const { code, stdout, stderr } = await runDsh(
      copy,
      ['cordis.yml', '-p', 'have it written', '--output', 'json'],
      { OPENAI_BASE_URL: server.baseURL, OPENAI_API_KEY: 'the-key', OPENAI_MODEL: 'local' },
    )

    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(await readFile(join(copy, 'broken-project/written'), 'utf8')).toBe('it\n')
    const { answer, children } = JSON.parse(stdout) as { answer: string; children: unknown[] }
    expect(answer).toMatch(/^done: Child agent .* completed[^]*done: I did/)
    expect(children).toMatchObject([{ provider: 'acp', stopReason: 'completed' }])
    expect(server.requests).toHaveLength(4)
    for (const { headers } of server.requests) expect(headers.authorization).toBe('Bearer the-key')
  }, 60_000)

  test.each<[string, Variables, RegExp]>([
    [
      'no key',
      {},
      /set DEEPSEEK_API_KEY, or ANTHROPIC_API_KEY, or OPENAI_API_KEY, or OPENAI_BASE_URL/,
    ],
    [
      'an endpoint without a model',
      { OPENAI_BASE_URL: 'http://user-of-it@127.0.0.1:1/v1' },
      /OPENAI_BASE_URL is set but no model is named: set OPENAI_MODEL/,
    ],
  ])(
    'with %s says what to set and exits 2',
    async (_, env, message) => {
      const copy = await copyOfExample()

      const { code, stdout, stderr } = await runDsh(copy, ['cordis.yml', '-p', 'hi'], env)

      expect(stderr).toMatch(message)
      expect(stderr).not.toMatch(/^ {4}at |user-of-it/m)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    },
    20_000,
  )
})

describe('cordis.demo.yml', () => {
  test('tells a person who asks anything else that it is a script', async () => {
    const copy = await copyOfExample()

    const { code, stdout } = await runDsh(copy, ['cordis.demo.yml', '-p', 'write a poem'], {})

    expect(stdout).toContain('I am a script, not a language model')
    expect(code).toBe(0)
  }, 60_000)
})

function namesOf(items: readonly { readonly name: string }[]): string[] {
  return items.map(({ name }) => name).toSorted()
}
