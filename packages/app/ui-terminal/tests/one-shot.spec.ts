import type { AppRequest } from '@deepseek-ai/dsh-app'
import type { SessionId, SessionStore, StoredSession } from '@deepseek-ai/dsh-session'
import { gate, scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { booted, createTerminal } from './helpers.ts'

type Script = Parameters<typeof scriptedModel>[0]

async function asking(script: Script, request: Partial<AppRequest> = {}, config = {}) {
  const terminal = createTerminal({ isTTY: false })
  const app = await booted(terminal, { prompt: 'hi', ...request }, config)
  const model = scriptedModel(script)
  app.ctx.llm.registerAdapter(model)
  return { ...terminal, app, model }
}

/** Holds one session. */
function memoryStore(stored: StoredSession): SessionStore {
  const settled = Promise.resolve()
  return {
    open: () => {},
    append: () => {},
    flush: () => settled,
    close: () => settled,
    load: async () => stored,
  }
}

describe('one answer', () => {
  test('is the last text alone; what came before it is progress', async () => {
    const { app, stdout, stderr } = await asking([
      { text: 'first I look', calls: [{ name: 'nope' }] },
      { text: 'the answer\n' },
    ])

    expect(await app.begin()).toBe(0)
    expect(stdout()).toBe('the answer\n')
    expect(stderr()).toMatch(/^first I look\n\* nope\n! nope: /)
  })

  test('falls back to the last text there was', async () => {
    const { app, stdout } = await asking([{ text: 'so far', calls: [{ name: 'nope' }] }, ''])

    await app.begin()

    expect(stdout()).toBe('so far\n')
  })

  test('comes without anything when there is none', async () => {
    const { app, stdout } = await asking([''])

    expect(await app.begin()).toBe(0)
    expect(stdout()).toBe('')
  })

  test('shows reasoning when the config says so', async () => {
    const { app, stdout, stderr } = await asking(
      [{ reasoning: 'hmm', text: 'a' }],
      {},
      { showReasoning: true },
    )

    await app.begin()

    expect(stdout()).toBe('a\n')
    expect(stderr()).toBe('hmm\n')
  })

  test('is cut where a limit cut it, with 1', async () => {
    const { app, stdout, stderr } = await asking([{ text: 'half an', finish: 'max-tokens' }])

    expect(await app.begin()).toBe(1)
    expect(stdout()).toBe('half an\n')
    expect(stderr()).toBe('the turn ended early: max-tokens\n')
  })

  test('leaves no agent and no listener behind', async () => {
    const { app } = await asking(() => 'a')
    const hooks = (): number =>
      Object.values(app.ctx.root.events._hooks).reduce((sum, list) => sum + list.length, 0)
    await app.begin()
    const before = hooks()

    await app.begin()

    expect(app.ctx.agents.list()).toEqual([])
    expect(hooks()).toBe(before)
  })

  test('is not mixed with what the agents of others do', async () => {
    const { app, stderr } = await asking(async (request, index) => {
      const [first] = request.messages[0]?.content ?? []
      const task = first?.type === 'text' ? first.text : ''
      if (task === 'work' || index > 0) return 'done'
      if (task === 'hi') await other.agent.send('on my own')
      const description = task === 'hi' ? 'mine' : 'not mine'
      return { calls: [{ name: 'delegate', input: { description, prompt: 'work' } }] }
    })
    const other = app.ctx.agents.create({ cwd: '/' })

    expect(await app.begin()).toBe(0)
    expect(stderr()).toContain('-> mine [spawn] started')
    expect(stderr()).not.toContain('not mine')
  })

  test('is left at once at the second SIGINT', async () => {
    const door = gate()
    const { app, shows } = await asking([{ calls: [{ name: 'deaf' }] }])
    app.ctx.tools.register({
      name: 'deaf',
      description: '',
      parameters: z.object({}),
      execute: () => door.opened.then(() => ''),
    })
    const code = app.begin()
    await shows('* deaf')

    app.interrupt()
    app.interrupt()

    expect(await code).toBe(130)
    door.open()
  })

  test('refuses a model that is not there, and leaves no listener', async () => {
    const { app } = await asking(['a'], { model: 'nope' })
    const hooks = (): number => app.ctx.root.events._hooks['session/event']?.length ?? 0
    const before = hooks()

    await expect(app.begin()).rejects.toMatchObject({ code: 'UNKNOWN_MODEL' })
    expect(hooks()).toBe(before)
  })
})

describe('a resumed session', () => {
  const id = 'stored' as SessionId

  test('goes on in its folder, and reports the tokens of this turn alone', async () => {
    const { app, model, stdout } = await asking(['more'], { resume: id, output: 'json' })
    app.ctx.sessions.registerStore(
      memoryStore({
        header: { id, createdAt: 0, cwd: '/', delegationDepth: 0 },
        events: [
          { seq: 0, time: 0, type: 'turn/start', data: { turn: 1, model: 'scripted' } },
          {
            seq: 1,
            time: 0,
            type: 'user/message',
            data: { content: [{ type: 'text', text: 'before' }] },
          },
          {
            seq: 2,
            time: 0,
            type: 'assistant/message',
            data: {
              content: [{ type: 'text', text: 'old' }],
              model: 'scripted',
              usage: { inputTokens: 500, outputTokens: 500 },
              finish: 'stop',
            },
          },
          { seq: 3, time: 0, type: 'turn/end', data: { reason: 'completed' } },
        ],
      }),
    )

    expect(await app.begin()).toBe(0)
    expect(JSON.parse(stdout())).toMatchObject({
      answer: 'more',
      sessionId: id,
      usage: { inputTokens: 10, outputTokens: 5 },
    })
    expect(model.requests[0]?.messages).toHaveLength(3)
  })
})

describe('--output json', () => {
  test('tells of children that were cancelled with the turn', async () => {
    const never = new Promise(() => {})
    const { app, stdout } = await asking(
      (request) =>
        request.messages.length === 1 &&
        request.messages[0]?.content[0]?.type === 'text' &&
        request.messages[0].content[0].text === 'child'
          ? { text: 'half', until: never }
          : { calls: [{ name: 'delegate', input: { description: 'task', prompt: 'child' } }] },
      { output: 'json' },
    )
    const code = app.begin()
    await waitFor('the child works', () => app.ctx.agents.list().length === 2)
    app.interrupt()

    expect(await code).toBe(130)
    expect(JSON.parse(stdout())).toMatchObject({
      stopReason: 'aborted',
      error: { code: 'ABORTED' },
      children: [{ label: 'task', provider: 'spawn', stopReason: 'aborted', children: [] }],
    })
  })
})

describe('--output events', () => {
  test('lets no tool run on while the reader is behind', async () => {
    const { app, streams, stdout } = await asking(
      [{ text: 'x'.repeat(200_000), calls: [{ name: 'touch' }] }, 'done'],
      { output: 'events' },
    )
    let touched = 0
    app.ctx.tools.register({
      name: 'touch',
      description: '',
      parameters: z.object({}),
      execute: async () => `${(touched += 1)}`,
    })
    const reader = streams.stdout as unknown as NodeJS.ReadableStream
    reader.pause()

    const code = app.begin()
    await waitFor('the stream is full', () => streams.stdout.writableNeedDrain)
    expect(touched).toBe(0)
    reader.resume()

    expect(await code).toBe(0)
    expect(touched).toBe(1)
    expect(
      stdout()
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { event: { type: string } }).event.type),
    ).toContain('tool/result')
  })
})
