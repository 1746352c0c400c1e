import { describe, expect, test } from 'vitest'
import { bootRules, bootConfig, failureOfBoot, failureOfPlaybook, textOf } from './helpers.ts'

describe('playbook', () => {
  test.each([
    ['- reply: { text: [a', /playbook\.yml", line 2, column \d+: /],
    [
      '- reply: { text: a }\n- reply: { text: a, text: b }',
      /line 2, column \d+: duplicated mapping/,
    ],
    ['a: 1\n---\nb: 2', /playbook\.yml": expected a single document/],
    ['', /must be a list of rules, not missing$/],
    ['[]', /must be a list of rules, not \[\]$/],
    ['rules: []', /must be a list of rules, not {"rules":\[\]}$/],
    ['- hello', /rule 1: expected object, received string; it is "hello"$/],
    ['- when: { step: 1 }', /rule 1 "reply": .*; it is missing$/],
    [
      '- reply: {}',
      /rule 1 "reply": needs one of reasoning, text, calls, finish, error, stall; it is {}$/,
    ],
    ['- reply: { delayMs: 5 }', /rule 1 "reply": needs one of/],
    ['- { reply: { text: a }, wenn: {} }', /rule 1: unknown key "wenn" \(known: when, reply\)/],
    ['- { reply: { txt: a } }', /rule 1 "reply": unknown key "txt" \(known: reasoning, text, /],
    ['- { when: { users: a }, reply: { text: a } }', /"when": unknown key "users" \(known: user, /],
    [
      '- reply: { text: a }\n- reply: { text: 1 }',
      /rule 2 "reply\.text": expected string.*; it is 1$/,
    ],
    [
      '- { when: { user: "(" }, reply: { text: a } }',
      /"when\.user": Invalid regular expression.*"\("$/,
    ],
    ['- { when: { step: -1 }, reply: { text: a } }', /"when\.step": .*; it is -1$/],
    ['- { when: { step: "1" }, reply: { text: a } }', /"when\.step": expected .*; it is "1"$/],
    ['- { when: { turn: 0 }, reply: { text: a } }', /"when\.turn": .*; it is 0$/],
    ['- { when: { tool: "a b" }, reply: { text: a } }', /"when\.tool": must be the name of a tool/],
    ['- reply: { calls: [] }', /"reply\.calls": .*; it is \[\]$/],
    ['- reply: { calls: [{ input: {} }] }', /"reply\.calls\.0\.name": .*; it is missing$/],
    ['- reply: { calls: [{ name: a, args: {} }] }', /"reply\.calls\.0": unknown key "args"/],
    ['- reply: { calls: [{ name: a, input: { n: .inf } }] }', /"reply\.calls\.0\.input/],
    ['- reply: { finish: done }', /"reply\.finish": .*"max-tokens".*; it is "done"$/],
    [
      '- reply: { error: { code: oops, message: a } }',
      /"reply\.error\.code": must be a code such as/,
    ],
    [
      '- reply: { text: a, usage: { inputTokens: 1.5, outputTokens: 1 } }',
      /"reply\.usage\.inputTokens"/,
    ],
    ['- reply: { text: a, chunkSize: 0 }', /"reply\.chunkSize": .*; it is 0$/],
    ['- reply: { text: a, delayMs: 600000 }', /"reply\.delayMs": .*; it is 600000$/],
    ['- reply: { stall: false, text: a }', /"reply\.stall": .*; it is false$/],
    ['- reply: { stall: true, finish: stop }', /"reply\.finish": is never reached after "stall"/],
    [
      '- reply: { finish: stop, error: { code: A, message: a } }',
      /"reply\.finish": is never reached after "error"/,
    ],
    [
      '- reply: { text: "{{usr}}" }',
      /"reply\.text": unknown placeholder "{{usr}}" \(known: user, /,
    ],
    ['- reply: { text: "{{user.1}}" }', /"{{user\.1}}" needs a pattern "when\.user" in its rule/],
    ['- reply: { text: "{{step.1}}" }', /"{{step\.1}}" needs a pattern "when\.step" in its rule/],
    [
      '- { when: { user: "(a)" }, reply: { calls: [{ name: a, input: { b: ["{{user.2}}"] } }] } }',
      /"reply\.calls\.0\.input\.b\.0": "{{user\.2}}" names a group that \/\(a\)\/u does not have/,
    ],
  ])('refuses %j', async (playbook, message) => {
    expect(await failureOfPlaybook(playbook)).toMatch(message)
  })

  test('names the file, the code and nothing of the stack', async () => {
    const message = await failureOfPlaybook('- reply: { text: 1 }')

    expect(message).toMatch(
      /^ScriptError: playbook "\/.*\/playbook\.yml", rule 1 "reply\.text": .*$/,
    )
  })

  test('a json file that is broken is refused with its line', async () => {
    const message = await failureOfPlaybook('[\n\t{ "reply": { "text" "a" } }\n]', 'p.json')

    expect(message).toMatch(/p\.json", line 2, column \d+: /)
  })

  test('a file that is missing is named with its whole path', async () => {
    const message = await failureOfBoot('{ playbook: sub/missing.yml }')

    expect(message).toMatch(/cannot read playbook "\/.*\/sub\/missing\.yml": ENOENT/)
  })

  test.each(['{}', '{ playbook: p.yml, rules: [{ reply: { text: a } }] }'])(
    'the config %s is refused: it needs exactly one of playbook and rules',
    async (config) => {
      expect(await failureOfBoot(config)).toMatch(/needs exactly one of "playbook" .* and "rules"/)
    },
  )

  test.each([
    ['{ chunkSize: 0, rules: [] }', /chunkSize/],
    ['{ delayMs: -1, rules: [] }', /delayMs/],
    ['{ rules: 5 }', /rules/],
  ])('the config %s is refused', async (config, message) => {
    expect(await failureOfBoot(config)).toMatch(message)
  })

  test('a wrong rule in the config is refused like one in a file', async () => {
    const message = await failureOfBoot('{ rules: [{ reply: { text: 1 } }] }')

    expect(message).toMatch(/the config's "rules", rule 1 "reply\.text": expected string/)
  })

  test('a json file serves as well, indented by tabs', async () => {
    const ctx = await bootConfig('{ playbook: p.json }', {
      'p.json': '[\n\t{\n\t\t"reply": { "text": "from json" }\n\t}\n]\n',
    })

    expect(await textOf(ctx, {})).toBe('from json')
  })

  test('rules of the config serve under the names of the config', async () => {
    const ctx = await bootConfig(
      '{ adapterName: b, model: c, rules: [{ reply: { text: inline } }] }',
    )

    expect(ctx.llm.models()).toEqual([{ name: 'c' }])
    expect(await textOf(ctx, { model: 'c' })).toBe('inline')
  })

  test('values of yml that are no text stay what they are', async () => {
    const ctx = await bootRules(`- reply: { text: '2020-01-01' }`)

    expect(await textOf(ctx, {})).toBe('2020-01-01')
  })
})
