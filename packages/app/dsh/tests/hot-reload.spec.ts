import { existsSync } from 'node:fs'
import { cp, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { delegate, project, startDsh } from './helpers.ts'

const hmr = `
- name: '@deepseek-ai/cordis-plugin-timer'
- name: '@deepseek-ai/cordis-plugin-hmr'
  config: { root: [] }
`

const yml = `# what is written stays
${hmr}
- name: '@deepseek-ai/dsh-agent-core'
- name: ./model.ts
- name: ./greet.ts
  config: { word: hello }
- name: '@deepseek-ai/dsh-ui-terminal'
`

function greet(expression: string): string {
  return `
import { z } from 'zod'
export const inject = ['tools']
export function apply(ctx, config) {
  ctx.tools.register({ name: 'greet', description: 'greets', parameters: z.object({}), execute: async () => ${expression} })
}
`
}

async function running(files: Readonly<Record<string, string>> = {}) {
  const cwd = await project({ 'dsh.yml': yml, 'greet.ts': greet("config.word + ' 1'"), ...files })
  const command = startDsh(['dsh.yml'], { cwd, isInteractive: true })
  await command.sees('model parrot')
  const edit = (name: string, text: string): Promise<void> => writeFile(join(cwd, name), text)
  return { cwd, command, edit }
}

describe('a change in the source of a plugin', () => {
  test('is there in the next prompt', async () => {
    const { command, edit } = await running()
    command.say('call greet')
    await command.sees('you said: hello 1\n')

    await edit('greet.ts', greet("config.word + ' 2'"))
    await command.sees('reloaded greet.ts')
    command.say('call greet')

    await command.sees('you said: hello 2\n')
    expect(await command.leaves()).toBe(0)
  })

  test.each([
    ['does not compile', `${greet("'no'")}const x = ;\n`, /\[warn\] hmr: .*\(greet\.ts:7\)/],
    ['is no plugin', 'export const x = 1\n', /\[warn\] hmr: invalid plugin/],
    ['throws', `throw new Error('no luck')\n`, /\[warn\] hmr: no luck \(greet\.ts:1\)/],
  ])('keeps the old version when it %s, and takes the next one', async (_what, text, told) => {
    const { command, edit } = await running()

    await edit('greet.ts', text)
    await command.sees(told)
    command.say('call greet')
    await command.sees('you said: hello 1\n')
    await edit('greet.ts', greet("'repaired'"))
    await command.sees('reloaded greet.ts')
    command.say('call greet')

    await command.sees('you said: repaired\n')
    expect(command.stderr).not.toMatch(/^ {4}at /m)
    expect(await command.leaves()).toBe(0)
  })

  test('that fails when it is applied is told, leaves nothing of it, and is repaired by the next', async () => {
    const { command, edit } = await running()

    await edit('greet.ts', greet("'no'").replace(/}\n$/, "throw new Error('no luck')\n}\n"))
    await command.sees(/\[error\] .*: no luck \(greet\.ts:6\)/)
    command.say('call greet')
    await command.sees('no tool "greet"')
    await edit('greet.ts', greet("'repaired'"))
    await command.sees(/reloaded greet.ts[^]*reloaded greet.ts/)
    command.say('call greet')

    await command.sees('you said: repaired\n')
    expect(await command.leaves()).toBe(0)
  })

  test('is seen also when an editor saves beside the file and renames, again and again', async () => {
    const { cwd, command, edit } = await running()

    for (const count of [1, 2, 3]) {
      await edit('greet.ts~', greet(`'saved ${count}'`))
      await rename(join(cwd, 'greet.ts~'), join(cwd, 'greet.ts'))
      await command.until('call greet', `you said: saved ${count}\n`)
    }

    expect(await command.leaves()).toBe(0)
  })

  test('is seen when an edit of the yml has loaded the plugin', async () => {
    const { command, edit } = await running({
      'loud.ts': greet("'LOUD'").replace("'greet'", "'loud'"),
    })
    await edit('dsh.yml', `${yml}- name: ./loud.ts\n`)
    await command.until('call loud', 'you said: LOUD\n')

    await edit('loud.ts', greet("'LOUDER'").replace("'greet'", "'loud'"))

    await command.until('call loud', 'you said: LOUDER\n')
    expect(await command.leaves()).toBe(0)
  })

  test('is seen where the yml names the folders to watch', async () => {
    const { command, edit } = await running({
      'dsh.yml': yml.replace('root: []', "root: ['.']"),
    })

    await edit('greet.ts', greet("'from a folder'"))

    await command.until('call greet', 'you said: from a folder\n')
    expect(await command.leaves()).toBe(0)
  })

  test('that waits for a service which nobody provides is told', async () => {
    const { command, edit } = await running()

    await edit('greet.ts', greet("'no'").replace("['tools']", "['nonesuch']"))

    await command.sees('[warn] dsh: entry "./greet.ts": waits for service "nonesuch"')
    expect(await command.leaves()).toBe(0)
  })

  test('reloads what imports it, once', async () => {
    const { command, edit } = await running({
      'greet.ts': greet('text').replace("'zod'", "'zod'\nimport { text } from './text.ts'"),
      'text.ts': "export const text = 'first'\n",
    })

    await edit('text.ts', "export const text = 'second'\n")
    await command.sees('reloaded greet.ts')
    command.say('call greet')

    await command.sees('you said: second\n')
    expect(command.stderr.match(/reloaded/g)).toHaveLength(1)
    expect(await command.leaves()).toBe(0)
  })

  test('of the front end or of the core begins a new session', async () => {
    const { cwd, command, edit } = await running({
      'dsh.yml': yml.replace("'@deepseek-ai/dsh-agent-core'", './core.ts'),
      'core.ts': "export * from '@deepseek-ai/dsh-agent-core'\n",
    })

    await edit('core.ts', `${await readFile(join(cwd, 'core.ts'), 'utf8')}// again\n`)
    await command.sees(/model parrot[^]*reloaded core\.ts[^]*model parrot/)
    command.say('hi')

    await command.sees('you said: hi\n')
    expect(await command.leaves()).toBe(0)
  })
})

describe('a change in the configuration', () => {
  test('is applied to the entry that changed, and to no other', async () => {
    const { cwd, command, edit } = await running()
    command.say('before')
    await command.sees('you said: before\n')

    await edit('dsh.yml', yml.replace('word: hello', 'word: good day'))
    command.say('call greet')
    await command.sees('you said: ')
    await command.until('call greet', 'you said: good day 1\n')

    expect(command.stderr.match(/model parrot/g)).toHaveLength(1)
    expect(await readFile(join(cwd, 'dsh.yml'), 'utf8')).toBe(
      yml.replace('word: hello', 'word: good day'),
    )
    expect(await command.leaves()).toBe(0)
  })

  test('adds and removes entries', async () => {
    const { command, edit } = await running()

    await edit('dsh.yml', `${yml}- name: ./loud.ts\n`)
    await command.sees('[error]')
    await edit('loud.ts', greet("'LOUD'").replace("'greet'", "'loud'"))
    await edit('dsh.yml', `${yml}- { id: loud, name: ./loud.ts }\n`)
    await command.until('call loud', 'you said: LOUD\n')
    await edit('dsh.yml', yml)

    await command.until('call loud', 'no tool "loud"')
    expect(await command.leaves()).toBe(0)
  })

  test.each([
    ['a syntax error', '- {\n', /\[warn\] \S+: dsh\.yml:2:1: /],
    ['an entry that is null', `${yml}-\n`, /\[warn\] \S+: "dsh\.yml": entry 7 must have a "name"/],
    ['nothing in it', '', /\[warn\] \S+: "dsh\.yml" is empty/],
  ])('with %s is told, and keeps what runs', async (_what, text, told) => {
    const { command, edit } = await running()

    await edit('dsh.yml', text)
    await command.sees(told)
    command.say('call greet')
    await command.sees('you said: hello 1\n')
    await edit('dsh.yml', yml.replace('word: hello', 'word: again'))

    await command.until('call greet', 'you said: again 1\n')
    expect(await command.leaves()).toBe(0)
  })

  test('with an unknown config key is told', async () => {
    const { command, edit } = await running()

    await edit('dsh.yml', yml.replace("agent-core'", "agent-core'\n  config: { maxStep: 3 }"))

    await command.sees(
      '[warn] dsh: entry "@deepseek-ai/dsh-agent-core": unknown config key "maxStep"',
    )
    expect(await command.leaves()).toBe(0)
  })

  test('that leaves nothing to serve with is told, and repaired by the next', async () => {
    const { command, edit } = await running()

    await edit('dsh.yml', yml.replace("agent-core'", "agent-core'\n  config: { model: nope }"))
    await command.sees('[error] dsh: no model "nope" (registered: parrot)')
    await edit('dsh.yml', yml)
    await command.sees(/nope[^]*model parrot/)
    command.say('hi')

    await command.sees('you said: hi\n')
    expect(await command.leaves()).toBe(0)
  })
})

describe('a change in the source of a backend', () => {
  const backend = fileURLToPath(new URL('../../../subagent/subagent-spawn', import.meta.url))
  const start = 'request, run, seed })'
  const tools = `
import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
export const inject = ['tools', 'subagents']
export function apply(ctx) {
  const register = (name, execute) =>
    ctx.tools.register({ name, description: name, parameters: z.object({}), execute })
  const { events } = ctx.root
  register('waiting', async () => {
    writeFileSync('waiting.started', '')
    while (!existsSync('gate')) await delay(5)
    return 'the gate is open'
  })
  register('census', async () => {
    const hooks = Object.values(events._hooks).reduce((sum, list) => sum + list.length, 0)
    return [ctx.subagents.list(), ctx.tools.table.names().sort(), hooks].join(' ')
  })
}
`

  async function delegating() {
    const cwd = await project()
    await cp(join(backend, 'src'), join(cwd, 'spawn'), { recursive: true })
    await symlink(join(backend, 'node_modules'), join(cwd, 'spawn/node_modules'))
    const source = await readFile(join(cwd, 'spawn/provider.ts'), 'utf8')
    expect(source).toContain(start)
    const files = {
      'tools.ts': tools,
      'dsh.yml': `${hmr}
- name: '@deepseek-ai/dsh-agent-core'
- name: ./model.ts
- name: ./tools.ts
- name: '@deepseek-ai/dsh-subagent'
- name: ./spawn/index.ts
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: spawn }
- name: '@deepseek-ai/dsh-ui-terminal'
`,
    }
    for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text)
    const command = startDsh(['dsh.yml'], { cwd, isInteractive: true })
    await command.sees('model parrot')
    const edit = (mark: string): Promise<void> =>
      writeFile(
        join(cwd, 'spawn/provider.ts'),
        source.replace(
          start,
          `request: { ...request, prompt: '${mark} ' + request.prompt }, run, seed })`,
        ),
      )
    return { cwd, command, edit }
  }

  test('is for the next run; a run in flight finishes on the old code', async () => {
    const { cwd, command, edit } = await delegating()
    command.say(delegate('call waiting'))
    await waitFor('the child works', () => existsSync(join(cwd, 'waiting.started')))

    await edit('reloaded')
    await command.sees('reloaded spawn/index.ts')
    await writeFile(join(cwd, 'gate'), '')
    await command.sees('the gate is open')
    command.say(delegate('again'))

    await command.sees('you said: reloaded again')
    expect(command.stdout).not.toContain('reloaded call waiting')
    expect(await command.leaves()).toBe(0)
  })

  test('leaves one provider, one tool and as many listeners as before after twenty reloads', async () => {
    const { command, edit } = await delegating()
    command.say('call census')
    await command.sees(/you said: spawn census,subagent,waiting \d+\n/)

    for (let count = 1; count <= 20; count += 1) {
      await edit(`version${count}`)
      await waitFor('it is reloaded', () => command.stderr.split('reloaded ').length === count + 1)
    }
    command.say('call census')
    await waitFor('it is counted', () => command.stdout.split('you said').length === 3)
    command.say(delegate('hi'))
    await command.sees('you said: version20 hi')

    const [first, second] = command.stdout.match(/you said: spawn .*\n/g) ?? []
    expect(second).toBe(first)
    expect(await command.leaves()).toBe(0)
  })
})
