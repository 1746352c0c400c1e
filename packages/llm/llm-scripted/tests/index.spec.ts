import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { assistant, bootConfig, bootRules, chunksOf, result, textOf, user } from './helpers.ts'

describe('llm-scripted', () => {
  test('leaves the registry with its plugin', async () => {
    const ctx = await bootConfig('{ rules: [{ reply: { text: a } }] }')
    const entry = [...ctx.loader.entries()].find(({ options }) => options.id === 'model')

    await entry?.fiber?.dispose()

    expect(ctx.llm.models()).toEqual([])
  })

  test('says in the log that the model is a script', async () => {
    const ctx = await bootConfig('{ rules: [{ reply: { text: a } }] }')

    const lines = ctx.logger.buffer.map(({ args }) => String(args[0]))

    expect(lines).toContain('model "scripted" is a script: 1 rules from the config\'s "rules"')
  })

  test('the playbook of the README answers as it reads', async () => {
    const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
    const playbook = readme.split('```yaml\n')[2]?.split('```')[0] ?? ''
    const ctx = await bootRules(playbook)
    const messages = [user('run ls -a'), assistant('I run ls -a.')]
    const tools = [{ name: 'bash', description: '', parameters: {} }]

    expect(await chunksOf(ctx, { messages: messages.slice(0, 1), tools })).toContainEqual({
      type: 'tool-call',
      callId: 'call-1-1',
      name: 'bash',
      input: { command: 'ls -a' },
    })
    expect(await textOf(ctx, { messages: [...messages, result('bash', 'exit code 3')] })).toBe(
      'It ended with 3.',
    )
    expect(await textOf(ctx, {})).toBe('I have no words for this')
  })
})
