import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startModelServer } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { dsh, model, project, refusal, working } from './helpers.ts'

async function refused(yml: string, files: Record<string, string> = {}): Promise<string> {
  const cwd = await project({ 'dsh.yml': yml, ...files })
  return refusal(await dsh(['dsh.yml', '-p', 'hi'], { cwd }))
}

describe('the configuration file', () => {
  test.each([
    ['an empty file', '\n', '"dsh.yml" is empty: write a list of entries'],
    ['a mapping', 'name: x\n', '"dsh.yml" must be a list of entries'],
    ['a syntax error', '- name: x\n  config: { a: 1\n- name: y\n', /dsh: dsh\.yml:3:1: \S/],
    ['an unknown tag', '- name: !!nope x\n', /dsh: dsh\.yml:1:\d+: unknown tag/],
    ['an entry without a name', '- name: ./model.ts\n- id: x\n', 'entry 2 has no "name"'],
    ['an entry that is a text', '- ./model.ts\n', 'entry 1 must have a "name"'],
    ['an entry that is null', '-\n', 'entry 1 must have a "name"'],
    [
      'a misspelt key of an entry',
      '- name: ./model.ts\n  confg: { a: 1 }\n',
      'entry "./model.ts": unknown key "confg" (did you mean "config"?',
    ],
    [
      'two entries with one id',
      '- { id: a, name: ./model.ts }\n- { id: a, name: ./model.ts }\n',
      'entry "./model.ts": another entry has the id "a": rename one of the two',
    ],
    ['an id that is a number', '- { id: 3, name: ./model.ts }\n', 'the id must be a text, not 3'],
    [
      'a misspelt key inside a group',
      '- name: cordis:group\n  group: true\n  config:\n    - { name: ./model.ts, disable: true }\n',
      'entry "./model.ts": unknown key "disable" (did you mean "disabled"?',
    ],
  ])('refuses %s', async (_what, yml, text) => {
    expect(await refused(yml)).toMatch(text)
  })

  test('refuses a file that does not exist, a folder and another kind of file', async () => {
    const cwd = await project({ 'dsh.txt': working })

    expect(refusal(await dsh(['nope.yml'], { cwd }))).toMatch('"nope.yml" does not exist')
    expect(refusal(await dsh(['.'], { cwd }))).toMatch('is a folder: give the path of a yml in it')
    expect(refusal(await dsh(['dsh.txt'], { cwd }))).toMatch(
      'the name must end in .yml, .yaml or .json',
    )
  })

  test.each([
    ['does not exist', undefined, '"sub.yml" does not exist'],
    ['has a syntax error', '- {\n', 'sub.yml:2:1:'],
    [
      'has a bad entry',
      '- name: ./gone.ts\n',
      '"sub.yml", entry "./gone.ts": file "gone.ts" does not exist',
    ],
  ])('names the included file that %s', async (_what, sub, text) => {
    const yml = `${working}- name: cordis:include\n  config: { path: ./sub.yml }\n`
    expect(await refused(yml, sub === undefined ? {} : { 'sub.yml': sub })).toMatch(text)
  })

  test('checks a file that is included under the name of the package in the same way', async () => {
    const yml = `${working}- name: '@deepseek-ai/cordis-plugin-include'\n  config: { path: ./sub.yml }\n`
    expect(await refused(yml, { 'sub.yml': '- id: x\n' })).toMatch(
      '"sub.yml": entry 1 has no "name"',
    )
  })

  test('refuses a .env that cannot be read', async () => {
    expect(await refused(working, { '.env/file': '' })).toMatch('".env" cannot be read')
  })
})

describe('the module of an entry', () => {
  test.each([
    [
      'a package that is not installed',
      "'@deepseek-ai/dsh-agent-cora'",
      'package "@deepseek-ai/dsh-agent-cora" is not installed: did you mean "@deepseek-ai/dsh-agent-core"?',
    ],
    [
      'a package like no other',
      'no-such-plugin',
      'check the name, or run "npm install no-such-plugin"',
    ],
    ['a file that does not exist', './gone.ts', 'file "gone.ts" does not exist'],
    [
      'a built-in plugin that does not exist',
      'cordis:nope',
      'the built-in ones are cordis:include and cordis:group',
    ],
    [
      'a TypeScript syntax error',
      './syntax.ts',
      'syntax error at syntax.ts:2: Expression expected',
    ],
    ['a JavaScript syntax error', './syntax.js', /syntax error at syntax\.js:2: Unexpected token/],
    ['a syntax that Node cannot strip', './enum.ts', 'syntax error at enum.ts:1: TypeScript enum'],
    ['an import of what is not exported', './wrong-name.ts', 'syntax error at wrong-name.ts:1: '],
    [
      'a module that throws',
      './throws.ts',
      'its module failed while it was loaded: no luck (throws.ts:2)',
    ],
    [
      'a module that throws a text',
      './throws-text.ts',
      'its module failed while it was loaded: no luck',
    ],
    [
      'an import of a missing package',
      './imports.ts',
      'imports.ts imports package "no-such", which is not installed',
    ],
    [
      'an import of a missing file',
      './imports-file.ts',
      'imports-file.ts imports "missing.ts", which does not exist',
    ],
    [
      'a module that is no plugin',
      './no-plugin.ts',
      'it exports no plugin: export a function "apply"',
    ],
  ])('refuses %s', async (_what, name, text) => {
    const entry = name.replaceAll("'", '')
    const stderr = await refused(`${working}- name: ${name}\n`, {
      'syntax.ts': 'export const a = 1\nexport const b = ;\n',
      'syntax.js': 'export const a = 1\nexport const b = ;\n',
      'enum.ts': 'enum Colour { Red }\n',
      'wrong-name.ts': "import { nope } from './no-plugin.ts'\nexport default nope\n",
      'throws.ts': '// first line\nthrow new Error("no luck")\n',
      'throws-text.ts': 'throw "no luck"\n',
      'imports.ts': "import 'no-such'\n",
      'imports-file.ts': "import './missing.ts'\n",
      'no-plugin.ts': 'export const answer = 42\n',
    })

    expect(stderr).toMatch(text)
    expect(stderr).toMatch(`entry "${entry}": `)
  })
})

describe('the config of an entry', () => {
  test('names entry, key and value of what the schema refuses', async () => {
    const stderr = await refused(working.replace("core'", "core'\n  config: { maxSteps: many }"))

    expect(stderr).toMatch(
      'entry "@deepseek-ai/dsh-agent-core": config key "maxSteps": expected number but got many',
    )

    expect(stderr.trim().split('\n')).toHaveLength(4)
  })

  test('refuses a key that the schema does not know, and suggests one', async () => {
    expect(await refused(working.replace("core'", "core'\n  config: { maxStep: 3 }"))).toMatch(
      'entry "@deepseek-ai/dsh-agent-core": unknown config key "maxStep" (did you mean "maxSteps"?',
    )
  })

  test('refuses an unknown key at any depth', async () => {
    const stderr = await refused(
      `${working}- name: ./nested.ts\n  config: { list: [{ name: a }, { nam: b }], map: { x: { deep: { on: true } } } }\n`,
      {
        'nested.ts': `
        import z from '@deepseek-ai/schemastery'
        export const Config = z.object({
          list: z.array(z.object({ name: z.string() })),
          map: z.dict(z.intersect([z.object({ a: z.string() }), z.object({ deep: z.object({ off: z.boolean() }) })])),
        })
        export function apply() {}
      `,
      },
    )

    expect(stderr).toMatch(
      'entry "./nested.ts": unknown config key "list.1.nam" (did you mean "name"?',
    )
    expect(stderr).toMatch('entry "./nested.ts": unknown config key "map.x.deep.on" (known: off)')
  })

  test('accepts what one member of a union knows', async () => {
    const cwd = await project({
      'dsh.yml': `${working}- name: ./union.ts\n  config: { limit: { rows: 3 } }\n`,
      'union.ts': `
        import z from '@deepseek-ai/schemastery'
        export const Config = z.object({ limit: z.union([z.const('none'), z.object({ rows: z.number() })]) })
        export function apply() {}
      `,
    })

    expect(await dsh(['dsh.yml', '-p', 'hi'], { cwd })).toMatchObject({ code: 0 })
  })

  test('never prints the value of a secret', async () => {
    const stderr = await refused(
      `${working}- name: ./secret.ts\n  config: { apiKey: 31415926 }\n`,
      {
        'secret.ts': `
        import z from '@deepseek-ai/schemastery'
        export const Config = z.object({ apiKey: z.string() })
        export function apply() {}
      `,
      },
    )

    expect(stderr).toMatch('entry "./secret.ts": config key "apiKey": expected string')

    expect(stderr).not.toContain('31415926')
  })

  test('names the entry whose expression fails', async () => {
    expect(
      await refused(working.replace("core'", "core'\n  config: { maxSteps: !!js nope.nope }")),
    ).toMatch('entry "@deepseek-ai/dsh-agent-core": nope is not defined')
    expect(await refused(working.replace("core'", "core'\n  disabled: !!js nope.nope"))).toMatch(
      'entry "@deepseek-ai/dsh-agent-core": the expression of "disabled" failed: nope is not defined',
    )
  })

  test('names the entry whose plugin throws, and where', async () => {
    expect(
      await refused(`${working}- name: ./throws.ts\n`, {
        'throws.ts': 'export function apply() {\n  throw new Error("no luck")\n}\n',
      }),
    ).toMatch('entry "./throws.ts": no luck (throws.ts:2)')
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
