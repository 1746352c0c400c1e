import { describe, expect, test } from 'vitest'
import { assistant, bootRules, createRequest, result, textOf, user } from './helpers.ts'
import type { ModelRequest } from '@deepseek-ai/dsh-llm'
import { situationOf } from '../src/rule.ts'

const otherwise = `
- reply: { text: otherwise }
`

const tool = { name: 'bash', description: 'runs', parameters: {} }

describe('when', () => {
  test.each<[string, string, Partial<ModelRequest>, Partial<ModelRequest>]>([
    [
      'user is found in the last user text',
      'user: b+c',
      { messages: [user('abbc')] },
      { messages: [user('abbc'), assistant('yes'), user('no')] },
    ],
    [
      'system is found in the system prompt',
      'system: coder$',
      { system: 'you are a coder' },
      { system: 'you are a poet' },
    ],
    [
      'step is the number of answers since the last user text',
      'step: 1',
      { messages: [user('a'), assistant('b')] },
      { messages: [user('a'), assistant('b'), user('c')] },
    ],
    [
      'turn is the number of user texts',
      'turn: 2',
      { messages: [user('a'), assistant('b'), user('c')] },
      { messages: [user('a')] },
    ],
    [
      'result is found in the results of the last calls',
      'result: "fail [1-9]"',
      { messages: [user('a'), assistant('b'), result('bash', 'fail 1'), result('bash', 'pass 2')] },
      { messages: [user('a'), assistant('b'), result('bash', 'fail 1'), assistant('c')] },
    ],
    [
      'tool is one whose result just came back',
      'tool: read',
      { messages: [user('a'), assistant('b'), result('read', ''), result('bash', '')] },
      { messages: [user('a'), assistant('b'), result('bash', '')] },
    ],
    ['offers is a tool that may be called', 'offers: bash', { tools: [tool] }, { tools: [] }],
    ['lacks is a tool that may not be called', 'lacks: bash', { tools: [] }, { tools: [tool] }],
  ])('%s', async (_, condition, holds, fails) => {
    const ctx = await bootRules(`- when: { ${condition} }\n  reply: { text: matched }${otherwise}`)

    expect(await textOf(ctx, holds)).toBe('matched')
    expect(await textOf(ctx, fails)).toBe('otherwise')
  })

  test('a rule needs all of its conditions', async () => {
    const ctx = await bootRules(
      `- when: { user: fix, step: 0 }\n  reply: { text: matched }${otherwise}`,
    )

    expect(await textOf(ctx, { messages: [user('fix it')] })).toBe('matched')
    expect(await textOf(ctx, { messages: [user('fix it'), assistant('b')] })).toBe('otherwise')
    expect(await textOf(ctx, { messages: [user('look')] })).toBe('otherwise')
  })

  test('a result pattern does not hold where no result came back', async () => {
    const ctx = await bootRules(`- when: { result: '' }\n  reply: { text: matched }${otherwise}`)

    expect(await textOf(ctx, {})).toBe('otherwise')
  })

  test('the first of several rules that match answers', async () => {
    const ctx = await bootRules(`
- when: { user: a }
  reply: { text: first }
- when: { user: b }
  reply: { text: second }
`)

    expect(await textOf(ctx, { messages: [user('b a')] })).toBe('first')
  })

  test('steering counts as the last user text and begins again at step 0', async () => {
    const messages = [user('a'), assistant('b'), result('bash', 'ok'), user('rather c')]

    const situation = situationOf(createRequest({ messages }))

    expect(situation).toMatchObject({ user: 'rather c', step: 0, turn: 2, result: 'ok' })
  })
})

describe('NO_RULE', () => {
  test('shows what was seen, cut to a readable length, and the rules that there are', async () => {
    const ctx = await bootRules(`
- when: { user: '^deploy$', step: 3 }
  reply: { text: a }
- when: { system: poet }
  reply: { text: b }
`)
    const messages = [user('x'.repeat(300)), assistant('b'), result('bash', 'exit 1')]

    const message = await textOf(ctx, { messages })

    expect(message).toMatch(/^no rule of playbook ".*playbook\.yml" matches user text "x{200}…", /)
    expect(message).toContain('step 1, turn 1, result of bash "exit 1"')
    expect(message).toContain('its rules: 1 (user /^deploy$/u, step 3); 2 (system /poet/u)')
  })

  test('ends the turn of the agent as an error with this code', async () => {
    const ctx = await bootRules('- when: { user: ^hello }\n  reply: { text: a }')
    const { agent } = ctx.agents.create({ cwd: '/' })

    const end = await agent.send('goodbye')

    expect(end).toMatchObject({ reason: 'error', error: { code: 'NO_RULE' } })
  })
})
