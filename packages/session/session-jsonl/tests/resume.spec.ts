import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Agent } from '@deepseek-ai/dsh-agent'
import { isHarnessError } from '@deepseek-ai/dsh-llm'
import { scriptedModel, temporaryFolder, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import {
  appendOpenCalls,
  appendTurn,
  createHost,
  createSession,
  type Host,
  idOf,
  leaveBehind,
  linesOf,
  namesIn,
  registerTool,
  typesIn,
} from './helpers.ts'

/** A host whose model tells all that it is shown. */
async function createKnowing(root?: string): Promise<Host> {
  return createHost(({ messages }) => messages.map(textOf).join(' | '), {
    ...(root !== undefined && { root }),
  })
}

/** Ends a host, and boots another one over the same folder. */
async function restart({ ctx, root }: Host): Promise<Host> {
  await ctx.fiber.dispose()
  return createKnowing(root)
}

async function createRoot(): Promise<string> {
  return join(await temporaryFolder(), 'sessions')
}

type Content = readonly { readonly type: string }[]

function textOf({ content }: { readonly content: Content }): string {
  return content.map((block) => ('text' in block ? String(block.text) : block.type)).join()
}

/** What the model said last. */
function answerOf({ session }: Agent): string {
  const message = [...session.events()].findLast((event) => event.type === 'assistant/message')
  return message === undefined ? '' : textOf(message.data)
}

async function refusalOf(resuming: Promise<unknown>): Promise<string> {
  const error: unknown = await resuming.catch((reason: unknown) => reason)
  return isHarnessError(error) ? `${error.code} ${error.message}` : `not refused: ${String(error)}`
}

describe('a session that is resumed', () => {
  test('goes on in its file, with its model, its folder and what was said', async () => {
    const cwd = await temporaryFolder()
    const host = await createKnowing()
    host.ctx.llm.registerAdapter(scriptedModel(() => 'hello', 'other'))
    const first = host.createAgent({ cwd, options: { model: 'other' } })
    await first.send('my name is Ann')
    const before = readFileSync(host.fileOf(first), 'utf8')

    const { ctx, fileOf } = await restart(host)
    ctx.llm.registerAdapter(scriptedModel(({ messages }) => messages.map(textOf).join(), 'other'))
    const { agent } = await ctx.agents.resume(first.id)
    await agent.send('who am I?')

    expect(agent).toMatchObject({ id: first.id, model: 'other', cwd })
    expect(agent.session.header).toStrictEqual(first.session.header)
    expect(answerOf(agent)).toBe('my name is Ann,hello,who am I?')
    expect(readFileSync(fileOf(agent), 'utf8').startsWith(before)).toBe(true)
    expect(linesOf(fileOf(agent)).slice(1)).toStrictEqual([...agent.session.events()])
  })

  test('may use the tools that are registered', async () => {
    const host = await createHost()
    registerTool(host.ctx, 'work')
    const first = host.createAgent()
    await first.send('hello')

    const { ctx, model } = await restart(host)
    registerTool(ctx, 'work')
    const { agent } = await ctx.agents.resume(first.id)
    await agent.send('again')

    expect(model.requests[0]?.tools).toEqual(host.model.requests[0]?.tools)
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['work'])
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a text that is absent', { content: [{ type: 'text', text: undefined }], isError: false }],
    ['a list of texts', { content: ['text'], isError: false }],
    ['content that may be an error or not', { content: [{ type: 'text', text: 'done' }] }],
  ])('goes on after a call whose tool returned %s', async (_, value) => {
    const host = await createHost([{ calls: [{ name: 'odd' }] }, 'done'])
    registerTool(host.ctx, 'odd', async () => value as string)
    const first = host.createAgent()
    await first.send('go')

    const { ctx } = await restart(host)
    const { agent } = await ctx.agents.resume(first.id)

    expect(await agent.send('go on')).toEqual({ reason: 'completed' })
    expect(answerOf(agent)).toBe('go | tool-call | tool-result | done | go on')
  })

  test('can be resumed again and again', async () => {
    let host = await createKnowing()
    const first = host.createAgent()
    await first.send('turn 1')

    for (let turn = 2; turn <= 4; turn += 1) {
      host = await restart(host)
      const { agent } = await host.ctx.agents.resume(first.id)
      await agent.send(`turn ${turn}`)
      expect(agent.session.turnCount).toBe(turn)
    }

    expect(typesIn(host.fileOf(first)).filter((type) => type === 'turn/end')).toHaveLength(4)
  })

  test('changes nothing on disk before it goes on', async () => {
    const host = await createKnowing()
    const first = host.createAgent()
    await first.send('hello')
    const before = readFileSync(host.fileOf(first))

    const { ctx, fileOf } = await restart(host)
    const { dispose } = await ctx.agents.resume(first.id)
    await dispose()

    expect(readFileSync(fileOf(first))).toEqual(before)
  })
})

describe('a turn that a crash cut off', () => {
  test.each([0, 1, 2])(
    'is closed once, one result for each call, %i of which began',
    async (logged) => {
      const root = await createRoot()
      const session = createSession()
      appendTurn(session)
      appendOpenCalls(session, ['a', 'b'], logged)
      const file = leaveBehind(root, session)
      const host = await createKnowing(root)

      const { agent, dispose } = await host.ctx.agents.resume(session.id, { model: 'scripted' })
      await dispose()

      const events = [...agent.session.events(session.length)]
      expect(events.map(({ type }) => type)).toEqual([
        ...(logged > 0 ? ['tool/result'] : ['tool/call', 'tool/result']),
        ...(logged > 1 ? ['tool/result'] : ['tool/call', 'tool/result']),
        'step/end',
        'turn/end',
      ])
      expect(events.filter(({ type }) => type === 'tool/result')).toMatchObject([
        { data: { callId: 'a', isError: true, code: 'INTERRUPTED' } },
        { data: { callId: 'b', isError: true, code: 'INTERRUPTED' } },
      ])
      expect(events.at(-1)).toMatchObject({ data: { reason: 'interrupted' } })
      expect(linesOf(file).slice(1)).toStrictEqual([...agent.session.events()])

      const before = readFileSync(file)
      const again = await restart(host)
      const second = await again.ctx.agents.resume(session.id)
      expect(readFileSync(file)).toEqual(before)
      await second.agent.send('go on')
      expect(answerOf(second.agent)).toContain('tool-result | tool-result | go on')
      expect(typesIn(file).filter((type) => type === 'turn/end')).toHaveLength(3)
    },
  )

  test('is closed on disk also when the process is killed before it goes on', async () => {
    const root = await createRoot()
    const session = createSession()
    appendOpenCalls(session, ['a'], 1)
    const file = leaveBehind(root, session)
    const { ctx } = await createKnowing(root)

    const { agent } = await ctx.agents.resume(session.id)
    await waitFor('the end is on disk', () => typesIn(file).at(-1) === 'turn/end')

    expect(linesOf(file).slice(1)).toStrictEqual([...agent.session.events()])
  })

  test('with a torn last line goes on without it, and says so', async () => {
    const root = await createRoot()
    const session = createSession()
    appendOpenCalls(session, ['a'], 1)
    const file = leaveBehind(root, session)
    appendFileSync(file, '{"seq":5,"time":17')
    const { ctx, warnings } = await createKnowing(root)

    const { agent } = await ctx.agents.resume(session.id)
    await agent.send('go on')

    expect(warnings).toEqual([
      `${file}:7: the last line is torn: it is kept in a file beside this one`,
    ])
    expect(linesOf(file).slice(1)).toStrictEqual([...agent.session.events()])
    const torn = namesIn(root).find((name) => name.includes('.torn-'))
    expect(readFileSync(join(root, torn ?? ''), 'utf8')).toBe('{"seq":5,"time":17')
  })
})

describe('a child that is resumed', () => {
  test('keeps its parent and its depth, at which it may not delegate further', async () => {
    const host = await createKnowing()
    const parent = host.createAgent()
    await parent.send('hello')
    const run = host.ctx.subagents.start('spawn', { prompt: 'the task', parent, label: 'a task' })
    await run.result

    const { ctx } = await restart(host)
    const { agent } = await ctx.agents.resume(run.id)
    await agent.send('go on')

    expect(agent.session.header).toMatchObject({
      parentSession: parent.id,
      delegationDepth: 1,
      origin: { provider: 'spawn', label: 'a task' },
    })
    expect(answerOf(agent)).toBe('the task | the task | go on')
    expect(() =>
      ctx.subagents.start('spawn', { prompt: 'deeper', parent: agent, maxDepth: 1 }),
    ).toThrow(expect.objectContaining({ code: 'DEPTH_EXCEEDED' }) as Error)
  })

  test('may use no tool that it might not use before', async () => {
    const root = await createRoot()
    const toolFilters = [{ deny: ['bash'] }, { allow: ['bash', 'read'] }]
    const session = createSession({
      parentSession: idOf('parent'),
      delegationDepth: 1,
      origin: { provider: 'spawn', toolFilters },
    })
    appendTurn(session)
    leaveBehind(root, session)
    const { ctx, model } = await createHost(
      (_, index) => (index > 0 ? 'done' : { calls: [{ name: 'bash', callId: 'call' }] }),
      { root },
    )
    for (const name of ['bash', 'read', 'write']) registerTool(ctx, name)

    const { agent } = await ctx.agents.resume(session.id, { model: 'scripted' })
    await agent.send('use a tool')

    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['read'])
    const result = [...agent.session.events()].find(({ type }) => type === 'tool/result')
    expect(result?.data).toMatchObject({ isError: true, code: 'TOOL_DENIED' })
  })

  test('keeps the tools that it was started with, and those of its parent', async () => {
    const host = await createHost()
    for (const name of ['bash', 'read', 'write']) registerTool(host.ctx, name)
    const parent = host.createAgent()
    const child = host.ctx.subagents.start('spawn', {
      prompt: 'work',
      parent,
      toolFilter: { deny: ['bash'] },
    })
    const grandchild = host.ctx.subagents.start('fork', {
      prompt: 'work',
      parent: host.ctx.agents.get(child.id)!,
      toolFilter: { allow: ['bash', 'read'] },
    })
    await Promise.all([child.result, grandchild.result])

    const { ctx } = await restart(host)
    for (const name of ['bash', 'read', 'write', 'later']) registerTool(ctx, name)
    const shown: string[][] = []
    for (const { id } of [child, grandchild]) {
      const { agent } = await ctx.agents.resume(id)
      shown.push(ctx.tools.visible(agent).map(({ name }) => name))
    }

    expect(shown).toEqual([['read', 'write', 'later'], ['read']])
  })

  test('still has what it inherited, of which its file holds nothing', async () => {
    const host = await createKnowing()
    const parent = host.createAgent()
    await parent.send('the codeword is swan')
    const run = host.ctx.subagents.start('fork', { prompt: 'remember it', parent })
    await run.result
    await parent.send('what the fork never sees')

    const { ctx, fileOf } = await restart(host)
    const { agent } = await ctx.agents.resume(run.id)
    await agent.send('say it')

    expect(answerOf(agent)).toBe(
      'the codeword is swan | the codeword is swan | remember it | the codeword is swan | the codeword is swan | remember it | say it',
    )
    expect(agent.session.header.seedLength).toBe(6)
    expect(readFileSync(fileOf(agent), 'utf8').split('\n')[1]).toContain('"seq":6')
  })

  test('shares the log of its parent when that is live again', async () => {
    const host = await createKnowing()
    const first = host.createAgent()
    await first.send('the codeword is swan')
    const run = host.ctx.subagents.start('fork', { prompt: 'remember it', parent: first })
    await run.result

    const { ctx } = await restart(host)
    const parent = (await ctx.agents.resume(first.id)).agent
    const child = (await ctx.agents.resume(run.id)).agent

    expect(child.session.at(0)).toBe(parent.session.at(0))
  })

  test('is refused when its parent is gone, and nothing is left behind', async () => {
    const host = await createKnowing()
    const parent = host.createAgent()
    await parent.send('hello')
    const run = host.ctx.subagents.start('fork', { prompt: 'work', parent })
    await run.result

    const { ctx, root, fileOf } = await restart(host)
    rmSync(fileOf(parent))

    expect(await refusalOf(ctx.agents.resume(run.id))).toBe(
      `SESSION_CORRUPT the fork "${run.id}" cannot be read without its parent: no session "${parent.id}" in "${root}"`,
    )
    expect(ctx.sessions.list()).toEqual([])
  })
})

describe('a session that cannot be resumed', () => {
  test.each([
    ['unknown', 'UNKNOWN_SESSION no session "unknown" in '],
    ['../one', 'INVALID_SESSION_ID session id "../one" must be of 1 to 128 letters'],
    ['/etc/passwd', 'INVALID_SESSION_ID session id "/etc/passwd" must be of 1 to 128 letters'],
  ])('is one with the id %j', async (id, refusal) => {
    const { ctx } = await createKnowing()

    expect(await refusalOf(ctx.agents.resume(idOf(id)))).toContain(refusal)
  })

  test('is one that is live, as the agent itself or its parent', async () => {
    const { ctx, createAgent } = await createKnowing()
    const agent = createAgent()
    await agent.send('hello')

    expect(await refusalOf(ctx.agents.resume(agent.id))).toBe(
      `DUPLICATE_SESSION session "${agent.id}" is already live`,
    )
  })

  test('is one that another host writes', async () => {
    const { createAgent, root } = await createKnowing()
    const agent = createAgent()
    await agent.send('hello')
    const { ctx } = await createKnowing(root)

    expect(await refusalOf(ctx.agents.resume(agent.id))).toContain(
      `SESSION_IN_USE "${join(root, agent.id)}.jsonl" is being written by process ${process.pid}`,
    )
  })

  test('is one that another host has resumed, be it idle or not', async () => {
    const host = await createKnowing()
    const { id } = host.createAgent()
    await host.ctx.agents.get(id)?.send('hello')
    const one = await restart(host)
    const two = await createKnowing(one.root)

    await one.ctx.agents.resume(id)

    expect(await refusalOf(two.ctx.agents.resume(id))).toContain('SESSION_IN_USE')
    await one.ctx.agents.get(id)?.send('again')
    await one.ctx.fiber.dispose()
    const { agent } = await two.ctx.agents.resume(id)
    expect(agent.session.turnCount).toBe(2)
  })

  test.each([
    ['SESSION_CORRUPT', ':3: the session cannot be read: it is not JSON', 3, '{"seq":1,'],
    [
      'SESSION_CORRUPT',
      ':4: the session cannot be read: seq is 7, expected 2',
      4,
      '{"type":"step/start","seq":7}',
    ],
    [
      'SESSION_VERSION',
      ':1: session format version "2" is not supported',
      1,
      '{"type":"session","version":2,"header":{}}',
    ],
  ])('is one with a file that is %s, which stays as it is', async (code, told, line, text) => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session)
    const file = leaveBehind(root, session)
    const lines = readFileSync(file, 'utf8').split('\n')
    writeFileSync(file, lines.with(line - 1, text).join('\n'))
    const before = readFileSync(file)
    const { ctx } = await createKnowing(root)

    const refusal = await refusalOf(ctx.agents.resume(session.id))

    expect(refusal).toContain(`${code} ${file}${told}`)
    expect(refusal).toContain('nothing was changed')
    expect(readFileSync(file)).toEqual(before)
    expect(namesIn(root)).toEqual(['one.jsonl'])
    expect(ctx.sessions.list()).toEqual([])
  })

  test('is free again for somebody else when its model is missing', async () => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session)
    leaveBehind(root, session)
    const { ctx } = await createKnowing(root)

    expect(await refusalOf(ctx.agents.resume(session.id))).toContain(
      'UNKNOWN_MODEL no model "model"',
    )

    expect(namesIn(root)).toEqual(['one.jsonl'])
    const { agent } = await ctx.agents.resume(session.id, { model: 'scripted' })
    await agent.send('go on')
    expect(answerOf(agent)).toBe('hello | re: hello | go on')
  })

  test('is not mistaken for a new one with the same id', async () => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session)
    const file = leaveBehind(root, session)
    const before = readFileSync(file)
    const { createAgent, warnings } = await createKnowing(root)

    await createAgent({ id: session.id }).send('hello')

    expect(warnings.join()).toContain(`"${file}" belongs to another session`)
    expect(readFileSync(file)).toEqual(before)
  })
})
