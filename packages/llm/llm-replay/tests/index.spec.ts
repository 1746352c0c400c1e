import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { SessionId } from '@deepseek-ai/dsh-session'
import {
  bootYml,
  collectErrors,
  scriptedModel,
  temporaryFolder,
  waitFor,
} from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import * as plugin from '../src/index.ts'
import {
  boot,
  delegating,
  fixturePath,
  isAnswered,
  promptOf,
  record,
  registerDelegate,
  textOf,
  unload,
} from './helpers.ts'

const usage = { inputTokens: 1, outputTokens: 2 }

function says(text: string, more: object = {}) {
  return { content: [{ type: 'text', text }], model: 'scripted', usage, finish: 'stop', ...more }
}

async function fixtureOf(sessions: Readonly<Record<string, readonly object[]>>): Promise<string> {
  const path = join(await temporaryFolder(), 'fixture.json')
  await writeFile(path, JSON.stringify({ version: 1, sessions }))
  return path
}

/** Boots a replay of these sessions, of which the test expects that errors are logged. */
async function bootReplay(sessions: Readonly<Record<string, readonly object[]>>) {
  const path = await fixtureOf(sessions)
  const ctx = await boot({ mode: 'replay', fixture: path }, { expectErrors: /REPLAY|ReplayError/ })
  registerDelegate(ctx)
  return { ctx, path, errors: collectErrors(ctx), agent: createAgent(ctx) }
}

function createAgent(ctx: Context): Agent {
  return ctx.agents.create({ cwd: '/', options: { model: 'scripted' } }).agent
}

/** An agent that a call in another process asked for. */
function createForElsewhere(ctx: Context, callId = 'call'): Agent {
  return ctx.agents.create({
    cwd: '/',
    parentSession: 'elsewhere' as SessionId,
    origin: { provider: 'acp', callId },
    options: { model: 'scripted' },
  }).agent
}

const delegation = {
  content: [
    {
      type: 'tool-call',
      callId: 'call',
      name: 'delegate',
      input: { provider: 'spawn', prompt: 'work' },
    },
  ],
  model: 'scripted',
  usage,
  finish: 'tool-calls',
}

describe('the plugin', () => {
  test('has no default export', () => {
    expect(plugin).not.toHaveProperty('default')
  })

  test('finds the fixture from the folder of the yml, and serves the recorded models', async () => {
    const ctx = await bootYml(
      `
- name: '@deepseek-ai/dsh-llm-replay'
  config: { mode: replay, fixture: ./run.json, adapterName: again }
- name: '@deepseek-ai/dsh-agent-core'
`,
      {
        files: {
          'run.json': JSON.stringify({
            version: 1,
            sessions: {
              root: [says('hello', { model: 'one' })],
              'root#2': [says('hi', { model: 'two' }), says('ho', { model: 'one' })],
            },
          }),
        },
        expectErrors: /REPLAY_UNUSED|ReplayError/,
      },
    )

    expect(ctx.llm.models().map(({ name }) => name)).toEqual(['one', 'two'])
  })

  test('records below the folder of the yml, and makes the folder', async () => {
    const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-llm-replay'
  config: { mode: record, fixture: ./kept/here/run.json }
- name: '@deepseek-ai/dsh-agent-core'
`)
    ctx.llm.registerAdapter(scriptedModel(['hello']))
    await createAgent(ctx).send('hi')

    await ctx.fiber.dispose()

    const path = join(fileURLToPath(ctx.baseUrl ?? ''), 'kept', 'here', 'run.json')
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ version: 1 })
  })

  test('tells when the recording cannot be written', async () => {
    const ctx = await boot(
      { mode: 'record', fixture: '/dev/null/run.json' },
      { expectErrors: /could not be written/ },
    )
    const errors = collectErrors(ctx)

    await unload(ctx)

    expect(errors).toEqual([
      expect.stringMatching(/^the recording "\/dev\/null\/run.json" could not be written: EEXIST/),
    ])
  })

  test.each([
    [{ mode: 'rewind', fixture: 'x.json' }],
    [{ mode: 'replay' }],
    [{ fixture: 'x.json' }],
  ])('refuses the config %j', (config) => {
    expect(() => plugin.Config(config as never)).toThrow(/mode|fixture|rewind/)
  })
})

describe('a recording', () => {
  test('holds what each session was answered, without times and random ids', async () => {
    const { fixture, sessions } = await record({
      prompts: ['go'],
      script: (request) =>
        promptOf(request) === 'go' && !isAnswered(request)
          ? delegating({ provider: 'spawn', callId: 'call', prompt: 'work' })
          : { reasoning: 'hm', text: 'done', usage },
    })

    expect(JSON.parse(fixture)).toEqual({
      version: 1,
      sessions: {
        root: [
          { ...delegation, usage: { inputTokens: 10, outputTokens: 5 } },
          says('done', { content: thinking }),
        ],
        'root/call': [says('done', { content: thinking })],
      },
    })
    expect(fixture).not.toMatch(/"(time|createdAt|seq|id)"/)
    for (const { id } of sessions) expect(fixture).not.toContain(id)
    expect(fixture.endsWith('}\n')).toBe(true)
  })

  test('keeps how a reply failed', async () => {
    const error = { code: 'MODEL_RATE_LIMIT', message: 'slow down' }

    const { fixture } = await record({
      prompts: ['one', 'two'],
      script: (request) =>
        promptOf(request) === 'one' ? { text: 'I beg', finish: 'error', error } : 'better',
    })

    expect(JSON.parse(fixture)).toMatchObject({
      sessions: { root: [{ finish: 'error', error }, { finish: 'stop' }] },
    })
  })

  test('begins with sessions that are live already', async () => {
    const path = join(await temporaryFolder(), 'run.json')
    const ctx = await bootYml("- name: '@deepseek-ai/dsh-agent-core'\n")
    ctx.llm.registerAdapter(scriptedModel(['before', 'after']))
    const agent = createAgent(ctx)
    await agent.send('one')
    await ctx.loader.create({
      name: '@deepseek-ai/dsh-llm-replay',
      config: { mode: 'record', fixture: path },
    })
    await ctx.loader.await()

    await agent.send('two')
    await ctx.fiber.dispose()

    const { sessions } = plugin.readFixture(path)
    expect(sessions['root']?.map(({ content }) => textOf(content))).toEqual(['after'])
  })

  test('leaves out sessions that were never answered', async () => {
    const path = join(await temporaryFolder(), 'run.json')
    const ctx = await boot({ mode: 'record', fixture: path })
    ctx.llm.registerAdapter(scriptedModel([]))
    createAgent(ctx)

    await ctx.fiber.dispose()

    expect(plugin.readFixture(path)).toEqual({ version: 1, sessions: {} })
  })
})

const thinking = [
  { type: 'reasoning', text: 'hm' },
  { type: 'text', text: 'done' },
]

describe('a replay', () => {
  test('gives every kind of block back as it was', async () => {
    const content = [
      { type: 'reasoning', text: 'hm', metadata: { signature: 's' } },
      { type: 'text', text: 'I look' },
      { type: 'tool-call', callId: 'a', name: 'none', input: 'no json', metadata: { m: 1 } },
      { type: 'tool-call', callId: 'b', name: 'none', input: { deep: [1, null] } },
      { type: 'text', text: 'so' },
      { type: 'reasoning', text: '', metadata: { signature: 't' } },
    ]
    const reply = { content, model: 'scripted', usage: { ...usage, reasoningTokens: 1 } }
    const { agent, errors } = await bootReplay({
      root: [{ ...reply, finish: 'tool-calls' }, says('done')],
    })

    await agent.send('go')

    const messages = [...agent.session.events()].filter(({ type }) => type === 'assistant/message')
    expect(messages[0]?.data).toStrictEqual({ ...reply, finish: 'tool-calls' })
    expect(errors).toEqual([])
  })

  test.each([
    ['max-tokens', undefined],
    ['refusal', undefined],
    ['error', { code: 'MODEL_RATE_LIMIT', message: 'slow down' }],
  ])('ends a reply with %s as it did', async (finish, error) => {
    const { agent } = await bootReplay({
      root: [says('half', { finish, ...(error !== undefined && { error }) })],
    })

    expect(await agent.send('go')).toEqual({
      reason: finish,
      ...(error !== undefined && { error }),
    })
  })

  test('holds a reply that was cancelled until it is cancelled', async () => {
    const { agent } = await bootReplay({ root: [says('half', { finish: 'aborted' }), says('b')] })
    const turn = agent.send('go')
    await waitFor('it streams', () => agent.session.length > 2)

    agent.cancel('stop')

    expect(await turn).toMatchObject({ reason: 'aborted', error: { message: 'stop' } })
    expect(await agent.send('again')).toEqual({ reason: 'completed' })
  })

  test('is replayed in any number of turns and by sessions that are live already', async () => {
    const path = await fixtureOf({ root: [says('one'), says('two')] })
    const ctx = await bootYml("- name: '@deepseek-ai/dsh-agent-core'\n")
    const first = scriptedModel(['zero'])
    const remove = ctx.llm.registerAdapter(first)
    const agent = createAgent(ctx)
    await agent.send('a')
    await remove()
    await ctx.loader.create({
      name: '@deepseek-ai/dsh-llm-replay',
      config: { mode: 'replay', fixture: path },
    })
    await ctx.loader.await()

    await agent.send('b')
    await agent.send('c')

    const texts = [...agent.session.events()].flatMap((event) =>
      event.type === 'assistant/message' ? [textOf(event.data.content)] : [],
    )
    expect(texts).toEqual(['zero', 'one', 'two'])
  })
})

describe('a run that is another one than the recorded one', () => {
  test('fails at the reply that is one too many', async () => {
    const { agent, path, errors } = await bootReplay({ root: [says('one')] })
    await agent.send('a')

    const end = await agent.send('b')

    const message = `"${path}": session "root" asks for reply 2, recorded are 1`
    expect(end).toEqual({ reason: 'error', error: { code: 'REPLAY_EXHAUSTED', message } })
    expect(errors).toEqual([expect.stringContaining(message)])
  })

  test('fails when a session was not recorded', async () => {
    const { ctx, agent, path, errors } = await bootReplay({ root: [says('one')] })
    await agent.send('a')

    const end = await createAgent(ctx).send('a')

    const message = `"${path}" has no session "root#2" (recorded: root)`
    expect(end).toEqual({ reason: 'error', error: { code: 'REPLAY_MISSING', message } })
    expect(errors).toEqual([expect.stringContaining(message)])
  })

  test('tells of a child that was not recorded also when its parent goes on', async () => {
    const { agent, path, errors } = await bootReplay({ root: [delegation, says('fine')] })

    expect(await agent.send('go')).toEqual({ reason: 'completed' })

    expect(errors).toEqual([
      expect.stringContaining(`"${path}" has no session "root/call" (recorded: root)`),
    ])
  })

  test('tells at the end which replies nobody asked for', async () => {
    const { ctx, agent, path, errors } = await bootReplay({
      root: [says('one'), says('two')],
      'root/call': [says('three')],
    })
    await agent.send('a')

    await unload(ctx)

    expect(errors).toEqual([
      expect.stringContaining(
        `"${path}": session "root" asked for 1 of 2 recorded replies; session "root/call" asked for 0 of 1 recorded replies`,
      ),
    ])
  })

  test('serves no model when nothing was recorded at all', async () => {
    const ctx = await boot({ mode: 'replay', fixture: await fixtureOf({}) })

    expect(ctx.llm.models()).toEqual([])
  })

  test('may cancel before the model is asked instead of right after', async () => {
    const { ctx, agent, errors } = await bootReplay({
      root: [says('one'), { ...says(''), content: [], finish: 'aborted' }],
    })
    await agent.send('a')

    await unload(ctx)

    expect(errors).toEqual([])
  })
})

describe('a session whose parent is in another process', () => {
  test('has the replies that the call got, and those of others are not missed', async () => {
    const { ctx, errors } = await bootReplay({
      'parent/other': [says('of another process')],
      'parent/call': [delegation, says('done')],
      'parent/call/call': [says('worked')],
    })
    const agent = createForElsewhere(ctx)

    expect(await agent.send('go')).toEqual({ reason: 'completed' })
    await unload(ctx)

    expect(textOf(agent.session.deriveMessages().at(-1)?.content ?? [])).toBe('done')
    expect(errors).toEqual([])
  })

  test('fails instead of its last reply when more was recorded, for later nobody would hear of it', async () => {
    const { ctx, path } = await bootReplay({
      'parent/call': [says('one'), says('two')],
      'parent/call/look': [says('deep')],
    })

    const end = await createForElsewhere(ctx).send('go')

    const message = `"${path}": session "parent/call" asked for 1 of 2 recorded replies; session "parent/call/look" asked for 0 of 1 recorded replies`
    expect(end).toEqual({ reason: 'error', error: { code: 'REPLAY_UNUSED', message } })
  })

  test('is missed at the end when it was cut off', async () => {
    const { ctx, path, errors } = await bootReplay({
      'parent/call': [says('half', { finish: 'aborted' }), says('two')],
    })
    const agent = createForElsewhere(ctx)
    const turn = agent.send('go')
    await waitFor('it streams', () => agent.session.length > 2)
    agent.cancel('stop')
    await turn

    await unload(ctx)

    const message = `"${path}": session "parent/call" asked for 1 of 2 recorded replies`
    expect(errors).toEqual([expect.stringContaining(message)])
  })

  test.each([
    ['is long', 'x'.repeat(5000)],
    ['has characters that no file name has', 'call\0\n🌍 "*"'],
  ])('is recorded also when the id of its call %s', async (_, callId) => {
    const folder = join(await temporaryFolder(), 'run/')
    const recording = await boot({ mode: 'record', fixture: folder })
    recording.llm.registerAdapter(scriptedModel(['told']))
    await createForElsewhere(recording, callId).send('one')
    await recording.fiber.dispose()

    const ctx = await boot({ mode: 'replay', fixture: folder })
    const agent = createForElsewhere(ctx, callId)
    await agent.send('again')

    expect(textOf(agent.session.deriveMessages().at(-1)?.content ?? [])).toBe('told')
  })

  test('is recorded into a file of its own when the fixture is a folder, from which it is replayed', async () => {
    const folder = join(await temporaryFolder(), 'run/')
    const recording = await boot({ mode: 'record', fixture: folder })
    recording.llm.registerAdapter(scriptedModel((request) => `re: ${promptOf(request)}`))
    await createAgent(recording).send('zero')
    await createForElsewhere(recording, 'x/1').send('one')
    await createForElsewhere(recording, 'y').send('two')
    await recording.fiber.dispose()

    const ctx = await boot({ mode: 'replay', fixture: folder })
    const errors = collectErrors(ctx)
    const agent = createForElsewhere(ctx, 'x/1')
    await agent.send('again')
    await createAgent(ctx).send('again')
    await unload(ctx)

    expect((await readdir(folder)).toSorted()).toEqual([
      'parent.x%2F1.json',
      'parent.y.json',
      'root.json',
    ])
    expect(textOf(agent.session.deriveMessages().at(-1)?.content ?? [])).toBe('re: one')
    expect(errors).toEqual([])
  })
})

describe('readFixture', () => {
  test('reads what was recorded', () => {
    const { version, sessions } = plugin.readFixture(fixturePath('one-spawn-child.json'))

    expect(version).toBe(1)
    expect(Object.keys(sessions)).toEqual(['root', 'root/look'])
  })

  const whole = { version: 1, sessions: { root: [says('one')] } }

  test.each([
    ['{', 'Expected property name or'],
    ['[]', 'it: Invalid input: expected object, received array'],
    [{ ...whole, version: 2 }, 'version: Invalid input: expected 1'],
    [{ version: 1 }, 'sessions: Invalid input: expected record, received undefined'],
    [{ ...whole, extra: 1 }, 'it: Unrecognized key: "extra"'],
    [
      { version: 1, sessions: { root: [says('x', { finish: 'done' })] } },
      'sessions.root.0.finish: Invalid option',
    ],
    [
      { version: 1, sessions: { root: [says('x', { usage: {} })] } },
      'sessions.root.0.usage.inputTokens: Invalid input',
    ],
    [
      { version: 1, sessions: { root: [says('x', { content: [{ type: 'image' }] })] } },
      'sessions.root.0.content.0.type: Invalid',
    ],
    [
      { version: 1, sessions: { root: [says('x', { time: 1 })] } },
      'sessions.root.0: Unrecognized key: "time"',
    ],
  ])('names the file and what is wrong with %j', async (data, told) => {
    const path = join(await temporaryFolder(), 'fixture.json')
    await writeFile(path, typeof data === 'string' ? data : JSON.stringify(data))

    expect(() => plugin.readFixture(path)).toThrow(
      expect.objectContaining({
        code: 'INVALID_FIXTURE',
        message: expect.stringContaining(`cannot read the fixture "${path}": ${told}`) as string,
      }) as Error,
    )
  })

  test('names a folder that is not there', () => {
    expect(() => plugin.readFixture('/nowhere/')).toThrow(
      'cannot read the fixture "/nowhere/": ENOENT',
    )
  })

  test('names a file that is not there', () => {
    expect(() => plugin.readFixture('/nowhere.json')).toThrow(
      'cannot read the fixture "/nowhere.json": ENOENT',
    )
  })

  test('is what keeps a replay from loading without its fixture', async () => {
    const ctx = await boot(
      { mode: 'replay', fixture: '/nowhere.json' },
      { expectErrors: /cannot read the fixture|ENOENT/ },
    )

    expect(ctx.llm.models()).toEqual([])
  })
})
