import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startModelServer } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { dsh, model, project, refusal, working } from './helpers.ts'

async function refused(yml: string, files: Record<string, string> = {}): Promise<string> {
  const cwd = await project({ 'dsh.yml': yml, ...files })
  return refusal(await dsh(['dsh.yml', '-p', 'hi'], { cwd }))
}

describe('the configuration', () => {
  test('refuses a file that does not exist, a folder and another kind of file', async () => {
    const cwd = await project({ 'dsh.txt': working })

    expect(refusal(await dsh(['nope.yml'], { cwd }))).toMatch('"nope.yml" does not exist')
    expect(refusal(await dsh(['.'], { cwd }))).toMatch('is a folder: give the path of a yml in it')
    expect(refusal(await dsh(['dsh.txt'], { cwd }))).toMatch(
      'the name must end in .yml, .yaml or .json',
    )
  })

  test.each([
    ['a syntax error in the yml', '- {\n', {}, 'dsh: dsh.yml:2:1: '],
    ['an empty yml', '', {}, 'dsh: "dsh.yml" is empty'],
    [
      'a misspelt key of an entry',
      '- { name: ./model.ts, confg: {} }\n',
      {},
      '(did you mean "config"?',
    ],
    [
      'a package that is not installed',
      `${working}- name: no-such-plugin\n`,
      {},
      'entry "no-such-plugin": package "no-such-plugin" is not installed: check the name;',
    ],
    [
      'a plugin that does not compile',
      `${working}- name: ./broken.ts\n`,
      { 'broken.ts': 'export const a = 1\nexport const b = ;\n' },
      'entry "./broken.ts": syntax error at broken.ts:2: Expression expected',
    ],
    [
      'a plugin that throws',
      `${working}- name: ./throws.ts\n`,
      { 'throws.ts': 'export function apply() {\n  throw new Error("no luck")\n}\n' },
      'entry "./throws.ts": no luck (throws.ts:2)',
    ],
    [
      'an invalid config key',
      working.replace("core'", "core'\n  config: { maxSteps: many }"),
      {},
      'entry "@deepseek-ai/dsh-agent-core": config key "maxSteps": expected number but got "many"',
    ],
    [
      'an unknown config key',
      working.replace("core'", "core'\n  config: { maxStep: 3 }"),
      {},
      'entry "@deepseek-ai/dsh-agent-core": unknown config key "maxStep" (did you mean "maxSteps"?',
    ],
    [
      'a bad entry in an included file',
      `${working}- { name: cordis:include, config: { path: ./sub.yml } }\n`,
      { 'sub.yml': '- name: ./gone.ts\n' },
      '"sub.yml", entry "./gone.ts": file "gone.ts" does not exist',
    ],
  ])('is refused for %s', async (_what, yml, files, text) => {
    expect(await refused(yml, files)).toMatch(text)
  })
})

describe('entries that do not fit together', () => {
  test('names the service that an entry waits for, and who provides it', async () => {
    const stderr = await refused(
      "- name: ./model.ts\n- name: ./waits.ts\n- name: '@deepseek-ai/dsh-ui-terminal'\n",
      { 'waits.ts': "export const inject = ['nonesuch']\nexport function apply() {}\n" },
    )

    expect(stderr).toMatch(
      'entry "./model.ts": waits for service "llm", which no entry provides: add an entry for "@deepseek-ai/dsh-agent-core"',
    )
    expect(stderr).toMatch(
      'entry "./waits.ts": waits for service "nonesuch", which no entry provides: add an entry that does',
    )
  })

  test('tells a provider that failed from one that is missing', async () => {
    expect(await refused(working.replace("core'", "core'\n  config: { maxSteps: many }"))).toMatch(
      'entry "./model.ts": waits for service "llm" of entry "@deepseek-ai/dsh-agent-core", which does not run',
    )
  })

  test.each([
    [
      'two tools of one name',
      '- name: ./tool.ts\n- name: ./again/tool.ts\n',
      /entry "\.\/(again\/)?tool\.ts": tool "add" is already registered: .*(remove|rename)/,
    ],
    [
      'two model adapters of one name',
      '- name: ./again/model.ts\n',
      /entry "\.\/(again\/)?model\.ts": model adapter "model" is already registered: .*(remove|rename)/,
    ],
    [
      'two subagent providers of one name',
      "- name: '@deepseek-ai/dsh-subagent'\n- name: '@deepseek-ai/dsh-subagent-spawn'\n- { id: other, name: '@deepseek-ai/dsh-subagent-spawn' }\n",
      /entry "@deepseek-ai\/dsh-subagent-spawn"( \(id "other"\))?: subagent provider "spawn" is already registered: give one/,
    ],
    [
      'two front ends',
      "- { id: other, name: '@deepseek-ai/dsh-ui-terminal' }\n",
      /entry "@deepseek-ai\/dsh-ui-terminal"( \(id "other"\))?: front end "terminal" cannot serve beside "terminal": remove one/,
    ],
    [
      'two providers of one service',
      "- { id: other, name: '@deepseek-ai/dsh-agent-core' }\n",
      /entry "@deepseek-ai\/dsh-agent-core"( \(id "other"\))?: service "\w+" has been registered at <.*>: two entries provide it, remove one/,
    ],
  ])('refuses %s', async (_what, entries, text) => {
    const tool = `
      import { z } from 'zod'
      export const inject = ['tools']
      export function apply(ctx) {
        ctx.tools.register({ name: 'add', description: 'adds', parameters: z.object({}), execute: async () => '' })
      }
    `
    expect(
      await refused(`${working}${entries}`, {
        'tool.ts': tool,
        'again/tool.ts': tool,
        'again/model.ts': model,
      }),
    ).toMatch(text)
  })

  test('refuses a configuration without a front end', async () => {
    expect(await refused("- name: '@deepseek-ai/dsh-agent-core'\n")).toMatch(
      'no entry is a front end: add one, for example "@deepseek-ai/dsh-ui-terminal"',
    )
  })

  test('lists every entry that failed in one message', async () => {
    const stderr = await refused(
      `- name: no-such\n- name: ./gone.ts\n- name: ./throws.ts\n${working}`,
      { 'throws.ts': 'throw new Error("no luck")\n' },
    )

    expect(stderr).toMatch('cannot start "dsh.yml":')

    expect(stderr.match(/entry "/g)).toHaveLength(3)
  })

  test('warns of a tool whose subagent provider never appears, and runs', async () => {
    const cwd = await project({
      'dsh.yml': `${working}- name: '@deepseek-ai/dsh-subagent'\n- name: '@deepseek-ai/dsh-subagent-spawn'\n- name: '@deepseek-ai/dsh-tool-subagent'\n  config: { provider: acpp }\n`,
    })

    const { code, stderr } = await dsh(['dsh.yml', '-p', 'hi'], { cwd })

    expect(stderr).toContain(
      '[warn] tool-subagent: no subagent provider "acpp" (registered: spawn)',
    )
    expect(code).toBe(0)
  })

  test('starts entries that are disabled as little as it checks them', async () => {
    const cwd = await project({
      'dsh.yml': `${working}- { name: ./gone.ts, disabled: true }\n- { name: ./gone2.ts, disabled: !!js 1 + 1 === 2 }\n`,
    })

    expect(await dsh(['dsh.yml', '-p', 'hi'], { cwd })).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('the model', () => {
  test('refuses a --model that no adapter serves, and lists the models', async () => {
    const cwd = await project({ 'dsh.yml': working })

    expect(refusal(await dsh(['dsh.yml', '-p', 'hi', '--model', 'parot'], { cwd }))).toMatch(
      '--model: no model "parot" (registered: parrot)',
    )
  })

  test('names the entry whose model no adapter serves', async () => {
    expect(await refused(working.replace("core'", "core'\n  config: { model: parot }"))).toMatch(
      'entry "@deepseek-ai/dsh-agent-core": config key "model": no model "parot" (registered: parrot)',
    )
  })

  test('says which entries are disabled by what when there is no model at all', async () => {
    const stderr = await refused(
      working.replace('./model.ts', './model.ts\n  disabled: !!js "!process.env.NONESUCH_KEY"'),
    )

    expect(stderr).toMatch('no model is registered')
    expect(stderr).toMatch('entry "./model.ts" is disabled, because of: !process.env.NONESUCH_KEY')
  })

  test('gives 1 when the endpoint cannot be reached', async () => {
    const server = await startModelServer([])
    await server.close()
    const cwd = await project({
      'dsh.yml': `
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-llm-ai-sdk'
  config: { provider: openai-compatible, baseURL: '${server.baseURL}', apiKey: x, maxRetries: 0, models: [{ name: far }] }
- name: '@deepseek-ai/dsh-ui-terminal'
`,
    })

    const { code, stderr } = await dsh(['dsh.yml', '-p', 'hi'], { cwd })

    expect(stderr).toMatch(/the turn failed: .*\(MODEL_UNAVAILABLE\)/)
    expect(stderr).not.toMatch(/^ {4}at /m)
    expect(code).toBe(1)
  })
})

describe('the command line', () => {
  test.each([
    ['an empty prompt', ['-p', ''], '-p needs a prompt, not an empty text'],
    ['a blank prompt', ['-p', ' \n '], '-p needs a prompt'],
    ['an empty stdin as prompt', ['-p', '-'], '-p - read no prompt: stdin was empty'],
    ['a --cwd that does not exist', ['--cwd', 'nope'], '--cwd "nope" does not exist'],
    ['a --cwd that is a file', ['--cwd', 'dsh.yml'], '--cwd "dsh.yml" is not a folder'],
    [
      '--output json without a prompt',
      ['--output', 'json'],
      '--output json needs a prompt: add -p',
    ],
    [
      'an unknown output',
      ['-p', 'hi', '--output', 'xml'],
      'Allowed choices are text, json, events',
    ],
    ['an unknown option', ['--outptu', 'json'], '(Did you mean --output?)'],
    ['an option without its value', ['-p'], 'argument missing'],
    ['a second argument', ['other.yml'], 'too many arguments'],
    ['--resume with --cwd', ['--resume', 'x', '--cwd', '.'], '--cwd cannot go with --resume'],
    [
      '--resume without a session store',
      ['--resume', 'x'],
      'no session store is loaded: add an entry for "@deepseek-ai/dsh-session-jsonl"',
    ],
  ])('refuses %s', async (_what, args, text) => {
    const cwd = await project({ 'dsh.yml': working })

    const stderr = refusal(await dsh(['dsh.yml', ...args], { cwd }))

    expect(stderr).toMatch('dsh: ')
    expect(stderr).toMatch(text)
  })

  test('refuses to run without a configuration, and points to the help', async () => {
    const cwd = await project()

    const stderr = refusal(await dsh([], { cwd }))

    expect(stderr).toMatch("missing required argument 'config.yml'")
    expect(stderr).toMatch('dsh --help')
  })
})

test('shows the stack trace with DSH_DEBUG', async () => {
  const cwd = await project({
    'dsh.yml': `${working}- name: ./throws.ts\n`,
    'throws.ts': 'throw new Error("no luck")\n',
  })

  const { code, stderr } = await dsh(['dsh.yml', '-p', 'hi'], { cwd, env: { DSH_DEBUG: '1' } })

  expect(stderr).toMatch(/^ {4}at .*throws\.ts:1/m)
  expect(code).toBe(2)
})

test('leaves the configuration as it was written', async () => {
  const yml = `# a comment\n${working}- name: ./gone.ts\n`
  const cwd = await project({ 'dsh.yml': yml })
  const before = await readdir(cwd)

  await dsh(['dsh.yml', '-p', 'hi'], { cwd })
  await writeFile(join(cwd, 'gone.ts'), 'export function apply() {}\n')
  await dsh(['dsh.yml', '-p', 'hi'], { cwd })

  expect(await readFile(join(cwd, 'dsh.yml'), 'utf8')).toBe(yml)
  expect((await readdir(cwd)).filter((name) => !before.includes(name))).toEqual(['gone.ts'])
})
