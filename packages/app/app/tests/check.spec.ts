import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { boot } from '@deepseek-ai/dsh-app'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { config, createStreams } from './helpers.ts'

const working = `
- name: '@deepseek-ai/dsh-agent-core'
- name: ./model.ts
`
const model = "export const inject = ['llm']\nexport function apply() {}\n"

/** What the refusal says, with paths as seen from the folder of the yml. */
async function refused(yml: string, files: Record<string, string> = {}): Promise<string> {
  const path = await config(yml, { 'model.ts': model, ...files })
  const booting = boot(path, createStreams())
  const error: unknown = await booting.then(
    async (app) => {
      await app.dispose()
      return new Error('it booted')
    },
    (reason: unknown) => reason,
  )
  expect(error).toMatchObject({ name: 'AppError' })
  return (error as Error).message.replaceAll(`${dirname(path)}/`, '')
}

describe('the configuration file', () => {
  test.each([
    ['an empty file', '\n', '"dsh.yml" is empty: write a list of entries'],
    ['a mapping', 'name: x\n', '"dsh.yml" must be a list of entries'],
    [
      'a syntax error',
      '- name: x\n  config: { a: 1\n- name: y\n',
      /^dsh\.yml:3:1: \S.*: correct it there; an entry is written "- name: \.\/plugin\.ts"$/,
    ],
    ['an unknown tag', '- name: !!nope x\n', /^dsh\.yml:1:\d+: unknown tag/],
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
      'a group that contains itself',
      '- name: ./model.ts\n- &g\n  name: cordis:group\n  group: true\n  config:\n    - *g\n',
      'dsh.yml:2: entry "cordis:group": "config.0" contains itself through an alias: write out what is meant',
    ],
    [
      'a config that contains itself',
      '- name: ./model.ts\n  config: { a: &a { b: [1, *a] } }\n',
      'dsh.yml:1: entry "./model.ts": "config.a.b.1" contains itself through an alias',
    ],
    [
      'aliases that stand for more than can be held',
      `- name: ./model.ts\n  config:\n    a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n${[
        1, 2, 3, 4, 5, 6, 7, 8, 9,
      ]
        .map(
          (n) =>
            `    a${n}: &a${n} [${Array(10)
              .fill(`*a${n - 1}`)
              .join(', ')}]\n`,
        )
        .join('')}`,
      'dsh.yml:1: entry "./model.ts": its aliases stand for more than 100000 values',
    ],
    [
      'a misspelt key of the second of two entries',
      '- name: ./model.ts\n\n- name: ./model.ts\n  confg: 1\n',
      'dsh.yml:3: entry "./model.ts": unknown key "confg"',
    ],
    [
      'a misspelt key inside a group',
      '- name: cordis:group\n  group: true\n  config:\n    - { name: ./model.ts, disable: true }\n',
      'entry "./model.ts": unknown key "disable" (did you mean "disabled"?',
    ],
  ])('refuses %s', async (_what, yml, text) => {
    expect(await refused(yml)).toMatch(text)
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
      'sub.yml:1: entry 1 has no "name"',
    )
  })

  test('takes an alias for a copy: two entries of one anchor are two', async () => {
    const seen: unknown[] = []
    Object.assign(globalThis, { dshTestConfigs: seen })
    const path = await config('- &a\n  name: ./seen.ts\n  config: { n: 1 }\n- *a\n', {
      'seen.ts':
        'export function apply(ctx, config) {\n  globalThis.dshTestConfigs.push(config)\n}\n',
    })
    const app = await boot(path, createStreams())

    expect(seen).toEqual([{ n: 1 }, { n: 1 }])
    expect(await app.dispose()).toBe(true)
  })

  test('bounds what aliases stand for in each entry, not in all of them', async () => {
    const lists = [1, 2, 3].map(
      (n) =>
        `a${n}: &a${n} [${Array(10)
          .fill(`*a${n - 1}`)
          .join()}]`,
    )
    const many = `{ a0: &a0 [1,1,1,1,1,1,1,1,1,1], ${lists.join()}, b: [${Array(5).fill('*a3').join()}] }`
    const path = await config(`- &e { name: ./model.ts, config: ${many} }\n- *e\n`, {
      'model.ts': 'export function apply() {}\n',
    })
    const app = await boot(path, createStreams())

    expect(await app.dispose()).toBe(true)
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
      'package "no-such-plugin" is not installed: check the name; what it stands for must be in "dependencies" of package.json',
    ],
    [
      'a package of ours without its scope, which may belong to anybody',
      'dsh-subagent',
      'package "dsh-subagent" is not installed: did you mean "@deepseek-ai/dsh-subagent"?',
    ],
    [
      'a package of ours under another scope',
      "'@deepseek/dsh-subagnt'",
      'package "@deepseek/dsh-subagnt" is not installed: did you mean "@deepseek-ai/dsh-subagent"?',
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
      'imports.ts imports package "no-such", which is not installed: check the name;',
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
    const message = await refused(`${working}- name: ${name}\n`, {
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

    expect(message).toMatch(text)
    expect(message).toMatch(`entry "${entry}": `)
  })
})

test('a package that is there, but not where the yml is, is to be made a dependency', async () => {
  const folder = await temporaryFolder()
  const name = '@deepseek-ai/dsh-session'
  await writeFile(join(folder, 'dsh.yml'), `- name: '${name}'\n`)
  const text = `package "${name}" cannot be found from ${folder}: add it to "dependencies" of`

  await expect(boot(join(folder, 'dsh.yml'), createStreams())).rejects.toThrow(
    `${text} a new package.json in ${folder}, then install`,
  )
  await writeFile(join(folder, 'package.json'), '{}')
  await expect(boot(join(folder, 'dsh.yml'), createStreams())).rejects.toThrow(
    `${text} ${folder}/package.json, then install`,
  )
})

describe('the config of an entry', () => {
  test('names entry, key and value of what the schema refuses', async () => {
    const message = await refused(working.replace("core'", "core'\n  config: { maxSteps: many }"))

    expect(message).toMatch(
      'entry "@deepseek-ai/dsh-agent-core": config key "maxSteps": expected number but got "many"',
    )

    expect(message.split('\n')).toHaveLength(3)
  })

  test('refuses a key that the schema does not know, and suggests one', async () => {
    expect(await refused(working.replace("core'", "core'\n  config: { maxStep: 3 }"))).toMatch(
      'entry "@deepseek-ai/dsh-agent-core": unknown config key "maxStep" (did you mean "maxSteps"?',
    )
  })

  test('refuses an unknown key at any depth', async () => {
    const message = await refused(
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

    expect(message).toMatch(
      'entry "./nested.ts": unknown config key "list.1.nam" (did you mean "name"?',
    )
    expect(message).toMatch('entry "./nested.ts": unknown config key "map.x.deep.on" (known: off)')
  })

  test('tells once of an unknown key that the plugin has found too', async () => {
    const filter = 'config: { provider: spawn, toolFilter: { alow: [x] } }'
    const message = await refused(
      `${working}- name: '@deepseek-ai/dsh-subagent'\n- name: '@deepseek-ai/dsh-tool-subagent'\n  ${filter}\n`,
    )

    expect(message.split('\n').slice(1)).toEqual([
      '  entry "@deepseek-ai/dsh-tool-subagent": unknown config key "toolFilter.alow" (did you mean "allow"? Known: allow, deny)',
    ])
  })

  test('accepts what one member of a union knows', async () => {
    const path = await config(`- name: ./union.ts\n  config: { limit: { rows: 3 } }\n`, {
      'union.ts': `
        import z from '@deepseek-ai/schemastery'
        export const Config = z.object({ limit: z.union([z.const('none'), z.object({ rows: z.number() })]) })
        export function apply() {}
      `,
    })
    const app = await boot(path, createStreams())

    expect(await app.dispose()).toBe(true)
  })

  test('never prints the value of a secret', async () => {
    const message = await refused(
      `${working}- name: ./secret.ts\n  config: { apiKey: 31415926 }\n`,
      {
        'secret.ts': `
        import z from '@deepseek-ai/schemastery'
        export const Config = z.object({ apiKey: z.string() })
        export function apply() {}
      `,
      },
    )

    expect(message).toMatch('entry "./secret.ts": config key "apiKey": expected string')

    expect(message).not.toContain('31415926')
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

describe('a plugin that uses what it does not inject', () => {
  const apply = 'export function apply(ctx) {\n  ctx.tools.list()\n}\n'

  test.each([
    [
      'is told what to inject',
      apply,
      `uses service "tools" (plugin.ts:2) without "inject": add "export const inject = ['tools']"`,
    ],
    [
      'is told what to inject beside what it does',
      `${apply}export const inject = ['llm']\n`,
      `uses service "tools" (plugin.ts:2) without "inject": add "export const inject = ['llm', 'tools']"`,
    ],
    [
      'is told of static inject when it is a class',
      `export default class Plugin {\n  constructor(ctx) {\n    ctx.tools.list()\n  }\n}\n`,
      `uses service "tools" (plugin.ts:3) without "inject": add "static inject = ['tools']"`,
    ],
    [
      'is told of the default export that hides what it injects',
      `export const inject = ['tools']\nexport default function plugin(ctx) {\n  ctx.tools.list()\n}\n`,
      'has a default export, which hides its "inject": remove "export default"',
    ],
    [
      'is told of the default object that hides what it injects',
      `export const inject = ['tools']\n${apply}export default { apply }\n`,
      'has a default export, which hides its "inject": remove "export default"',
    ],
  ])('%s', async (_what, source, text) => {
    const message = await refused(`${working}- name: ./plugin.ts\n`, { 'plugin.ts': source })

    expect(message.split('\n')[1]).toBe(`  entry "./plugin.ts": ${text}`)
  })
})

describe('what entries wait for', () => {
  test('is named, with who provides it', async () => {
    const message = await refused('- name: ./model.ts\n- name: ./waits.ts\n', {
      'waits.ts':
        "export const inject = ['nonesuch', 'agents', 'tools']\nexport function apply() {}\n",
    })

    expect(message.split('\n').slice(1)).toEqual([
      '  entry "./model.ts": waits for service "llm", which no entry provides: add an entry for "@deepseek-ai/dsh-agent-core"',
      '  entry "./waits.ts": waits for service "nonesuch", which no entry provides: add an entry that does',
      '  entry "./waits.ts": waits for service "agents", "tools", which no entry provides: add an entry for "@deepseek-ai/dsh-agent-core"',
    ])
  })

  test('is told apart from a provider that failed', async () => {
    expect(await refused(working.replace("core'", "core'\n  config: { maxSteps: many }"))).toMatch(
      'waits for service "llm" of entry "@deepseek-ai/dsh-agent-core", which does not run',
    )
  })
})

describe('an entry', () => {
  test('is named by its id when it has one of its own, else by its place among others of its name, and by its file when that is included', async () => {
    const message = await refused(
      '- { id: one, name: ./gone.ts }\n- name: ./gone.ts\n- name: ./gone.ts\n- { name: cordis:include, config: { path: sub.yml } }\n',
      {
        'sub.yml': '- { id: two, name: ./gone.ts }\n',
      },
    )

    const names = message.split('\n').map((line) => line.trim().replace(/: file .*/, ''))
    expect(names.slice(1)).toEqual([
      'entry "./gone.ts" (id "one")',
      'entry "./gone.ts" (dsh.yml:2)',
      'entry "./gone.ts" (dsh.yml:3)',
      '"sub.yml", entry "./gone.ts" (id "two")',
    ])
  })

  test('inside a group is checked like any other, unless the group is disabled', async () => {
    const group = '- name: cordis:group\n  group: true\n  config:\n    - name: ./gone.ts\n'

    expect(await refused(group)).toMatch('entry "./gone.ts": file "gone.ts" does not exist')
    const disabled = group.replace('group: true', 'group: true\n  disabled: true')
    const app = await boot(await config(disabled), createStreams())
    expect(await app.dispose()).toBe(true)
  })

  test('that is included under a key which includes do not know is refused', async () => {
    expect(
      await refused('- { name: cordis:include, config: { path: sub.yml, initial: [] } }\n', {
        'sub.yml': '[]',
      }),
    ).toMatch(
      'entry "cordis:include": unknown config key "initial" (known: path, patches, enableLogs)',
    )
  })

  test('is patched by the id that it was given', async () => {
    const app = await boot(
      await config(
        '- { name: cordis:include, config: { path: sub.yml, patches: [{ id: one, name: ./gone.ts, disabled: true }] } }\n',
        {
          'sub.yml': '- { id: one, name: ./gone.ts }\n',
        },
      ),
      createStreams(),
    )

    expect(await app.dispose()).toBe(true)
  })
})
