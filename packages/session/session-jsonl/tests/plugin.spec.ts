import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setImmediate as tick } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bootYml, gate, scriptedModel, temporaryFolder, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import * as plugin from '../src/index.ts'
import {
  childrenOf,
  createHost,
  idOf,
  linesOf,
  namesIn,
  openFiles,
  registerDelegate,
  registerTool,
  storeEntry,
  storeYml,
  typesIn,
  watchCalls,
  watchWrites,
} from './helpers.ts'

const callTool = (name: string, input = {}) => ({ calls: [{ name, callId: 'call', input }] })

/** Calls the tools one after another, a step each, and is done. */
const callEach =
  (...names: string[]) =>
  (_: unknown, index: number) =>
    names[index] === undefined ? 'done' : callTool(names[index])

const turnTypes = [
  'turn/start',
  'user/message',
  'step/start',
  'assistant/message',
  'step/end',
  'turn/end',
]

describe('the plugin', () => {
  test('is loaded by the Loader, and has no default export', async () => {
    const { ctx } = await createHost()

    expect(storeEntry(ctx).fiber?.runtime?.name).toBe('session-jsonl')
    expect(plugin).not.toHaveProperty('default')
  })

  test('keeps a session in one file: its header, then its events', async () => {
    const { createAgent, root, fileOf } = await createHost()
    const agent = createAgent()

    await agent.send('hello')

    expect(namesIn(root).filter((name) => name.endsWith('.jsonl'))).toEqual([`${agent.id}.jsonl`])
    const [header, ...events] = linesOf(fileOf(agent))
    expect(header).toStrictEqual({ type: 'session', version: 1, header: agent.session.header })
    expect(events).toStrictEqual([...agent.session.events()])
  })

  test('finds a relative folder below that of the yml', async () => {
    const ctx = await bootYml(`${storeYml('kept/here')}- name: '@deepseek-ai/dsh-agent-core'\n`)
    ctx.llm.registerAdapter(scriptedModel(() => 'hello'))
    const { agent } = ctx.agents.create({ cwd: '/' })

    await agent.send('hello')

    const folder = fileURLToPath(ctx.baseUrl ?? '')
    expect(existsSync(join(folder, 'kept', 'here', `${agent.id}.jsonl`))).toBe(true)
  })

  test.each([
    ['/state', '/state/dsh/sessions'],
    ['', join(homedir(), '.local', 'state', 'dsh', 'sessions')],
  ])(
    'keeps sessions in the state folder when none is given, with %j as its variable',
    (value, root) => {
      vi.stubEnv('XDG_STATE_HOME', value)
      onTestFinished(() => void vi.unstubAllEnvs())

      expect(plugin.defaultRoot()).toBe(root)
    },
  )

  test('uses the state folder without a config', async () => {
    const state = await temporaryFolder()
    vi.stubEnv('XDG_STATE_HOME', state)
    onTestFinished(() => void vi.unstubAllEnvs())
    const ctx = await bootYml(
      "- name: '@deepseek-ai/dsh-session-jsonl'\n- name: '@deepseek-ai/dsh-agent-core'\n",
    )
    ctx.llm.registerAdapter(scriptedModel(() => 'hello'))
    const { agent } = ctx.agents.create({ cwd: '/' })

    await agent.send('hello')

    expect(existsSync(join(state, 'dsh', 'sessions', `${agent.id}.jsonl`))).toBe(true)
  })
})

describe('a step', () => {
  test('is on disk before its tools run', async () => {
    const { ctx, createAgent, fileOf } = await createHost(callEach('look'))
    const seen: unknown[] = []
    registerTool(ctx, 'look', async (_, { agent, callId }) => {
      seen.push(...linesOf(fileOf(agent)), callId)
      return 'seen'
    })

    await createAgent().send('look at yourself')

    expect(seen.slice(-3)).toEqual([
      expect.objectContaining({ type: 'assistant/message' }),
      expect.objectContaining({
        type: 'tool/call',
        data: { callId: 'call', name: 'look', input: {} },
      }),
      'call',
    ])
  })

  test('costs one write, and the end of the turn another one', async () => {
    const { ctx, createAgent, fileOf } = await createHost(callEach('slow', 'slow', 'slow'))
    registerTool(ctx, 'slow', async () => {
      await tick()
      return 'slow'
    })
    const agent = createAgent()
    const writes = watchWrites()

    await agent.send('go')

    expect(endsOf(fileOf(agent), writes)).toEqual([
      'tool/call',
      'tool/call',
      'tool/call',
      'turn/end',
    ])
  })

  test('is one write for calls that run at the same time', async () => {
    const { ctx, createAgent, fileOf } = await createHost((_, index) =>
      index > 0
        ? 'done'
        : { calls: ['a', 'b', 'c'].map((callId) => ({ name: 'slow', callId, input: {} })) },
    )
    registerTool(ctx, 'slow', undefined, { parallel: true })
    const agent = createAgent()
    const writes = watchWrites()

    await agent.send('go')

    expect(endsOf(fileOf(agent), writes)).toEqual(['tool/call', 'turn/end'])
  })

  test('costs two calls of the file system: a look whether the file is as it was, and a write', async () => {
    const { ctx, createAgent } = await createHost(callEach('look', 'look'))
    registerTool(ctx, 'look')
    const agent = createAgent()
    await agent.send('begin')
    const calls = watchCalls()

    await agent.send('go on')

    expect(calls).toEqual(['fstatSync', 'writeSync'])
  })

  test('of a child costs six calls of the file system from its birth to its end', async () => {
    const { ctx, createAgent } = await createHost()
    const parent = createAgent()
    await parent.send('hello')
    const calls = watchCalls()

    const run = ctx.subagents.start('spawn', { prompt: 'work', parent })
    await run.result
    await run.dispose()

    expect(calls).toEqual([
      'linkSync',
      'openSync',
      'writeSync',
      'closeSync',
      'statSync',
      'unlinkSync',
    ])
  })

  test('writes nothing that tools have in their environment', async () => {
    const secret = 'sesame-4711'
    vi.stubEnv('DSH_TEST_TOKEN', secret)
    onTestFinished(() => void vi.unstubAllEnvs())
    const { ctx, createAgent, root } = await createHost(
      (_, index) =>
        index > 0 ? 'done' : callTool('bash', { command: 'test -n "$GIVEN" && echo ok' }),
      {
        yml: `
- name: '@deepseek-ai/dsh-bash-local'
  config: { env: { GIVEN: ${secret} } }
- name: '@deepseek-ai/dsh-tool-bash'
`,
      },
    )
    await waitFor('the tool is there', () => ctx.tools.table.has('bash'))
    const agent = createAgent()

    await agent.send('use your environment')

    const text = namesIn(root)
      .map((name) => readFileSync(join(root, name), 'utf8'))
      .join('')
    expect(text).toContain('ok\\n')
    expect(text).not.toContain(secret)
    expect(text).not.toContain('DSH_TEST_TOKEN')
  })
})

/** The type of the event that each of these writes ended with. */
function endsOf(file: string, writes: readonly number[]): unknown[] {
  const bytes = readFileSync(file)
  let end = 0
  return writes.map((length) => {
    end += length
    const lines = bytes.subarray(0, end).toString().trimEnd().split('\n')
    return (JSON.parse(lines.at(-1) ?? '') as { type: string }).type
  })
}

describe('a turn', () => {
  test('is on disk when it has ended', async () => {
    const { createAgent, fileOf } = await createHost()
    const agent = createAgent()

    for (let turn = 1; turn <= 3; turn += 1) {
      await agent.send('hello')
      expect(typesIn(fileOf(agent))).toHaveLength(6 * turn)
    }
    expect(typesIn(fileOf(agent)).slice(-6)).toEqual(turnTypes)
  })

  test('has its input on disk while the model takes its time', async () => {
    const answer = gate()
    const { createAgent, fileOf } = await createHost(() => ({ text: 'a', until: answer.opened }))
    const agent = createAgent()

    const turn = agent.send('a long question')
    await waitFor('the input is on disk', () => existsSync(fileOf(agent)))

    expect(typesIn(fileOf(agent))).toEqual(['turn/start', 'user/message', 'step/start'])
    answer.open()
    await turn
  })

  test('that the shutdown of everything cuts off has its end on disk', async () => {
    const { ctx, createAgent, fileOf } = await createHost(() => ({ until: new Promise(() => {}) }))
    const agent = createAgent()
    const turn = agent.send('hello')
    await waitFor('the model is asked', () => agent.session.length > 2)

    await ctx.fiber.dispose()

    expect(await turn).toMatchObject({ reason: 'aborted' })
    expect(linesOf(fileOf(agent)).at(-1)).toMatchObject({
      type: 'turn/end',
      data: { reason: 'aborted' },
    })
  })
})

describe('children', () => {
  test('have files of their own, with parent, depth and call in the header', async () => {
    const { ctx, createAgent, fileOf } = await createHost(({ messages }, index) =>
      messages.length === 1 && index === 0 && lastText(messages) === 'go'
        ? callTool('delegate', { provider: 'spawn', prompt: 'work' })
        : 'done',
    )
    registerDelegate(ctx)
    const ids: ReturnType<typeof idOf>[] = []
    ctx.on('session/created', ({ session }) => void ids.push(session.id))
    const parent = createAgent()

    await parent.send('go')

    const [, child] = ids
    expect(linesOf(fileOf({ id: child! }))[0]).toMatchObject({
      header: {
        parentSession: parent.id,
        delegationDepth: 1,
        origin: { provider: 'spawn', callId: 'call' },
      },
    })
    expect(typesIn(fileOf({ id: child! }))).toEqual(turnTypes)
    const types = typesIn(fileOf(parent))
    expect(types.filter((type) => type === 'user/message')).toHaveLength(1)
    expect(types.filter((type) => type === 'tool/result')).toHaveLength(1)
  })

  test('are on disk with their task before their first reply', async () => {
    const answer = gate()
    const { ctx, createAgent, fileOf } = await createHost(() => ({
      text: 'a',
      until: answer.opened,
    }))
    const parent = createAgent()

    const run = ctx.subagents.start('spawn', { prompt: 'the task', parent })
    await waitFor('the child is on disk', () => existsSync(fileOf(run)))

    expect(readFileSync(fileOf(run), 'utf8')).toContain('the task')
    answer.open()
    await run.dispose()
  })

  test('may come twenty at once, and each file is whole', async () => {
    const { ctx, createAgent, root, fileOf } = await createHost(async ({ messages }) => {
      for (let turn = messages.length % 3; turn >= 0; turn -= 1) await tick()
      return messages.length === 1 ? callTool('work') : `re: ${lastText(messages)}`
    })
    registerTool(ctx, 'work')
    const parent = createAgent()
    await parent.send('one')
    const kinds = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? 'spawn' : 'fork'))

    const runs = kinds.map((kind, index) =>
      ctx.subagents.start(kind, { prompt: `task ${index}`, parent }),
    )
    await Promise.all(runs.map(({ result }) => result))

    for (const [index, run] of runs.entries()) {
      const [header, ...events] = linesOf(fileOf(run))
      const first = kinds[index] === 'fork' ? parent.session.length : 0
      expect(header).toMatchObject({ header: { id: run.id, parentSession: parent.id } })
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => first + at))
      expect(JSON.stringify(events[1])).toContain(`task ${index}`)
      expect(events.at(-1)).toMatchObject({ type: 'turn/end', data: { reason: 'completed' } })
    }
    await Promise.all(runs.map((run) => run.dispose()))
    expect(namesIn(root).filter((name) => name.endsWith('.jsonl'))).toHaveLength(21)
  })
})

function lastText(messages: readonly { readonly content: readonly object[] }[]): string {
  const [block] = messages.at(-1)?.content ?? []
  return block !== undefined && 'text' in block ? String(block.text) : ''
}

describe('a folder that cannot be written', () => {
  test('ends the turn with the reason before a tool runs; all is written when it can be', async () => {
    const { ctx, createAgent, root, fileOf } = await createHost(callEach('work'))
    let calls = 0
    registerTool(ctx, 'work', async () => {
      calls += 1
      return 'worked'
    })
    writeFileSync(root, 'a file in the place of the folder')
    const agent = createAgent()

    const end = await agent.send('go')

    expect(end).toEqual({
      reason: 'error',
      error: {
        code: 'NOT_EXECUTED',
        message: expect.stringContaining(
          `session "${agent.id}" could not be stored: cannot write "${fileOf(agent)}": ENOTDIR`,
        ) as string,
      },
    })
    expect(calls).toBe(0)
    rmSync(root)
    expect(await agent.send('again')).toEqual({ reason: 'completed' })
    expect(linesOf(fileOf(agent)).slice(1)).toStrictEqual([...agent.session.events()])
  })

  test('is warned of at the end of a turn without tools', async () => {
    const { createAgent, root, warnings } = await createHost()
    mkdirSync(dirname(root), { recursive: true })
    writeFileSync(root, '')
    const agent = createAgent()

    expect(await agent.send('go')).toEqual({ reason: 'completed' })

    expect(warnings.join()).toContain(`the last turn of session "${agent.id}" was not stored`)
    expect(warnings.join()).toContain('ENOTDIR')
    rmSync(root)
  })

  test('is warned of when a session ends', async () => {
    const { ctx, root, warnings } = await createHost()
    writeFileSync(root, '')
    const { agent, dispose } = ctx.agents.create({ cwd: '/' })
    await agent.send('go')

    await dispose()

    expect(warnings.join()).toContain(`the last events of session "${agent.id}" were not stored`)
    expect(ctx.sessions.list()).toEqual([])
  })

  test('is warned of when the store is unloaded', async () => {
    const { ctx, createAgent, root, warnings } = await createHost()
    writeFileSync(root, '')
    const agent = createAgent()
    await agent.send('go')

    await storeEntry(ctx).fiber?.dispose()

    expect(warnings.join()).toContain(`the last events of session "${agent.id}" are not stored`)
    rmSync(root)
  })

  test('refuses an agent whose id is no file name, and leaves none behind', async () => {
    const { ctx, createAgent } = await createHost()

    expect(() => createAgent({ id: idOf('../evil') })).toThrow(
      expect.objectContaining({ code: 'INVALID_SESSION_ID' }) as Error,
    )
    expect(ctx.agents.list()).toEqual([])
    expect(ctx.sessions.list()).toEqual([])
  })
})

describe('loading and unloading', () => {
  test('writes the sessions that are live when the store comes', async () => {
    const { ctx, createAgent, root, fileOf } = await createHost(() => 'hello', { isVolatile: true })
    const spoken = createAgent()
    await spoken.send('before')
    const silent = createAgent()

    await ctx.loader.create({ name: '@deepseek-ai/dsh-session-jsonl', config: { root } })
    await ctx.loader.await()
    await waitFor('what was said is on disk', () => existsSync(fileOf(spoken)))

    expect(linesOf(fileOf(spoken)).slice(1)).toStrictEqual([...spoken.session.events()])
    expect(existsSync(fileOf(silent))).toBe(false)
    await spoken.send('after')
    expect(typesIn(fileOf(spoken))).toEqual([...turnTypes, ...turnTypes])
  })

  test('loses nothing and leaks nothing over twenty reloads', async () => {
    const { ctx, createAgent, fileOf } = await createHost(callEach('reload'))
    registerTool(ctx, 'reload', async () => {
      await storeEntry(ctx).fiber?.restart()
      return 'reloaded'
    })
    const idle = createAgent()
    const first = createAgent()
    await first.send('go')
    const open = openFiles().length
    const listeners = Object.values(ctx.root.events._hooks).flat().length

    for (let round = 0; round < 20; round += 1) {
      const { agent, dispose } = ctx.agents.create({ cwd: '/' })
      expect(await agent.send('go')).toEqual({ reason: 'completed' })
      await first.send('go on')
      await dispose()
      expect(linesOf(fileOf(agent)).slice(1)).toStrictEqual([...agent.session.events()])
    }

    await idle.send('go')
    expect(linesOf(fileOf(first)).slice(1)).toStrictEqual([...first.session.events()])
    expect(linesOf(fileOf(idle)).slice(1)).toStrictEqual([...idle.session.events()])
    expect(openFiles()).toHaveLength(open + 1)
    expect(Object.values(ctx.root.events._hooks).flat()).toHaveLength(listeners)
  })

  test('writes what there is when it is unloaded, and keeps the sessions that it has', async () => {
    const answer = gate()
    const { ctx, createAgent, fileOf } = await createHost(() => ({
      text: 'a',
      until: answer.opened,
    }))
    const kept = createAgent()
    const turn = kept.send('hello')
    await waitFor('the model is asked', () => kept.session.length > 2)

    await storeEntry(ctx).fiber?.dispose()
    expect(typesIn(fileOf(kept))).toEqual(['turn/start', 'user/message', 'step/start'])
    const late = createAgent()
    answer.open()
    await Promise.all([turn, late.send('hello')])

    expect(typesIn(fileOf(kept))).toEqual(turnTypes)
    expect(existsSync(fileOf(late))).toBe(false)
  })

  test('keeps no file open of a session that has ended', async () => {
    const { ctx, root } = await createHost()
    const open = openFiles().length

    for (let round = 0; round < 50; round += 1) {
      const { agent, dispose } = ctx.agents.create({ cwd: '/' })
      await agent.send('hello')
      await dispose()
    }

    expect(openFiles()).toHaveLength(open)
    expect(namesIn(root)).toHaveLength(50)
  })

  test('keeps a child apart from its parent when it ends first', async () => {
    const { ctx, createAgent, root } = await createHost()
    const parent = createAgent()
    await parent.send('hello')
    const run = ctx.subagents.start('spawn', { prompt: 'work', parent })
    await run.result
    expect(childrenOf(ctx, parent)).toHaveLength(1)

    await run.dispose()

    expect(namesIn(root).filter((name) => name.endsWith('.lock'))).toEqual([
      `${parent.id}.jsonl.lock`,
    ])
  })
})
