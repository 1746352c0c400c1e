import { describe, expect, test } from 'vitest'
import { assistant, bootRules, inputsOf, result, textOf, user } from './helpers.ts'

describe('placeholders', () => {
  test.each([
    ['{{user}}', 'add 1 to {{2}}'],
    ['{{ user.0 }}', 'add 1 to {{2}}'],
    ['{{user.1}}', '1'],
    ['{{user.target}}', '{{2}}'],
    ['<{{user.3}}>', '<>'],
    ['{{system.1}}', 'coder'],
    ['{{result}}', 'sum {{user}}\n\nsecond'],
    ['{{result.1}}', '{{user}}'],
    ['{{step}}/{{turn}}', '1/1'],
    ['\\{{user}} is {{user.1}}', '{{user}} is 1'],
    ['a { b } {{ c', 'a { b } {{ c'],
    ['{{user.1}}{{user.1}}', '11'],
  ])('fill in %j', async (text, expected) => {
    const ctx = await bootRules(
      JSON.stringify([
        {
          when: {
            user: 'add (\\d) to (?<target>\\S+)( now)?',
            system: 'a (\\w+)',
            result: 'sum (.*)',
          },
          reply: { text },
        },
      ]),
    )

    const reply = await textOf(ctx, {
      system: 'you are a coder',
      messages: [
        user('add 1 to {{2}}'),
        assistant('b'),
        result('bash', 'sum {{user}}'),
        result('bash', 'second'),
      ],
    })

    expect(reply).toBe(expected)
  })

  test('stand anywhere in the strings of an input, and leave other values alone', async () => {
    const ctx = await bootRules(`
- when: { user: 'edit (.*)' }
  reply:
    calls:
      - name: edit
        input: { path: '{{user.1}}', edits: [{ to: 'was {{user.1}}', count: 2, all: true, by: null }] }
`)

    const inputs = await inputsOf(ctx, { messages: [user('edit "a\\b')] })

    expect(inputs).toEqual([
      { path: '"a\\b', edits: [{ to: 'was "a\\b', count: 2, all: true, by: null }] },
    ])
  })

  test('result is empty where none came back', async () => {
    const ctx = await bootRules(`- reply: { text: 'got <{{result}}>' }`)

    expect(await textOf(ctx, {})).toBe('got <>')
  })
})
