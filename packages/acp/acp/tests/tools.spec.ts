import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { textResult } from '@deepseek-ai/dsh-tools'
import { gate, scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Answer, type Client, connect, type Server, startServer } from './helpers.ts'

const files = `- name: '@deepseek-ai/dsh-fs-local'
- name: '@deepseek-ai/dsh-tool-fs'
`
const shell = `- name: '@deepseek-ai/dsh-bash-local'
- name: '@deepseek-ai/dsh-tool-bash'
`
const children = `- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: spawn }
`

describe('a tool call', () => {
  test.each([
    ['read', { path: 'a.txt', offset: 2 }, 'read a.txt', 'read', [{ path: 'a.txt', line: 2 }]],
    ['glob', { pattern: '*.txt' }, 'glob *.txt', 'search', undefined],
    ['grep', { pattern: 'o', path: 'a.txt' }, 'grep o', 'search', [{ path: 'a.txt' }]],
    ['bash', { command: 'echo  hi' }, 'echo hi', 'execute', undefined],
    ['other', { anything: 1 }, 'other', 'other', undefined],
  ])('of %s is shown with title, kind and places, then with its result', async (...row) => {
    const [name, input, title, kind, places] = row
    const { server, client, sessionId } = await session({
      entries: files + shell,
      script: [{ calls: [{ name, input }] }, 'done'],
    })
    await writeFile(join(server.folder, 'a.txt'), 'one\ntwo\n')

    await client.prompt(sessionId, 'go')

    const [call] = client.updates(sessionId, 'tool_call')
    const locations = places?.map((place) => ({ ...place, path: join(server.folder, place.path) }))
    expect(call).toMatchObject({ title, name, kind, status: 'in_progress', rawInput: input })
    expect(call?.locations).toEqual(locations)
    const end = client.updates(sessionId, 'tool_call_update').at(-1)
    expect(end).toMatchObject({
      toolCallId: call?.toolCallId,
      status: name === 'other' ? 'failed' : 'completed',
      content: [{ type: 'content', content: { type: 'text' } }],
    })
  })

  test('of edit shows its change as a diff', async () => {
    const input = { path: 'a.txt', oldText: 'one', newText: 'two' }
    const { server, client, sessionId } = await session({
      entries: files,
      script: [
        { calls: [{ name: 'read', input: { path: 'a.txt' } }] },
        { calls: [{ name: 'edit', input }] },
        'done',
      ],
    })
    const path = join(server.folder, 'a.txt')
    await writeFile(path, 'one\n')

    await client.prompt(sessionId, 'go')

    const diff = { type: 'diff', path, oldText: 'one', newText: 'two' }
    const call = client.updates(sessionId, 'tool_call')[1]
    expect(call).toMatchObject({ kind: 'edit', title: 'edit a.txt', content: [diff] })
    const end = client.updates(sessionId, 'tool_call_update').at(-1)
    expect(end).toMatchObject({ status: 'completed', content: [diff] })
    expect(await readFile(path, 'utf8')).toBe('two\n')
  })

  test('of write shows the old text beside the new one, and no old text for a new file', async () => {
    const { server, client, sessionId } = await session({
      entries: files,
      script: [
        { calls: [{ name: 'read', input: { path: 'a.txt' } }] },
        { calls: [{ name: 'write', input: { path: 'a.txt', content: 'two\n' } }] },
        { calls: [{ name: 'write', input: { path: 'b.txt', content: 'new\n' } }] },
        'done',
      ],
    })
    await writeFile(join(server.folder, 'a.txt'), 'one\n')

    await client.prompt(sessionId, 'go')

    const ends = client
      .updates(sessionId, 'tool_call_update')
      .filter(({ status }) => status === 'completed')
      .map(({ content }) => content?.[0])
    const [a, b] = ['a.txt', 'b.txt'].map((name) => join(server.folder, name))
    expect(ends.slice(1)).toEqual([
      { type: 'diff', path: a, oldText: 'one\n', newText: 'two\n' },
      { type: 'diff', path: b, newText: 'new\n' },
    ])
  })

  test('that fails shows why instead of its diff', async () => {
    const { client, sessionId } = await session({
      entries: files,
      script: [
        { calls: [{ name: 'edit', input: { path: 'no.txt', oldText: 'a', newText: 'b' } }] },
        'done',
      ],
    })

    await client.prompt(sessionId, 'go')

    const end = client.updates(sessionId, 'tool_call_update').at(-1)
    expect(end?.status).toBe('failed')
    expect(end?.content).toMatchObject([
      { type: 'content', content: { text: expect.stringContaining('no.txt') } },
    ])
  })

  test('is told of while it runs', async () => {
    const held = gate()
    const { server, client, sessionId } = await session({
      script: [{ calls: [{ name: 'slow' }] }, 'done'],
    })
    server.ctx.tools.register({
      name: 'slow',
      description: 'waits',
      parameters: z.object({}),
      execute: async (_, { update }) => {
        update({ text: 'half way' })
        update({ data: 'for programs' })
        await held.opened
        return textResult('there')
      },
    })

    const turn = client.prompt(sessionId, 'go')
    await waitFor('it is told', () => client.updates(sessionId, 'tool_call_update').length > 0)
    held.open()
    await turn

    expect(client.updates(sessionId, 'tool_call_update')).toMatchObject([
      { status: 'in_progress', content: [{ content: { text: 'half way' } }] },
      { status: 'completed', content: [{ content: { text: 'there' } }] },
    ])
  })

  test('is told of no more once it has its result', async () => {
    let late: (() => void) | undefined
    const { server, client, sessionId } = await session({
      script: [{ calls: [{ name: 'quick' }] }, 'done'],
    })
    server.ctx.tools.register({
      name: 'quick',
      description: 'tells too late',
      parameters: z.object({}),
      execute: async (_, { update }) => {
        late = () => update({ text: 'and another thing' })
        return textResult('there')
      },
    })
    await client.prompt(sessionId, 'go')

    late?.()
    await client.prompt(sessionId, 'go').catch(() => {})

    expect(client.updates(sessionId, 'tool_call_update')).toMatchObject([{ status: 'completed' }])
  })

  test('has an id of its own, also when the model repeats one', async () => {
    const calls = [{ name: 'nothing', callId: 'same' }]
    const { client, sessionId } = await session({ script: [{ calls }, { calls }, 'done'] })

    await client.prompt(sessionId, 'go')

    const ids = client.updates(sessionId, 'tool_call').map(({ toolCallId }) => toolCallId)
    expect(new Set(ids).size).toBe(2)
  })

  test('of subagent is one call that tells what the child does, and the child adds its tokens', async () => {
    const { client, sessionId } = await session({
      entries: children + files,
      script: ({ messages }, index) => {
        const isChild = JSON.stringify(messages[0]).includes('find it')
        if (index === 1) return isChild ? 'the child is done' : 'all is done'
        return isChild
          ? { calls: [{ name: 'glob', input: { pattern: '*.yml' } }] }
          : { calls: [delegation('find it')] }
      },
    })

    const { usage } = await client.prompt(sessionId, 'go')

    const [call, ...others] = client.updates(sessionId, 'tool_call')
    expect(call).toMatchObject({ name: 'subagent', kind: 'think', title: 'subagent a task' })
    expect(others).toEqual([])
    const texts = JSON.stringify(client.updates(sessionId, 'tool_call_update'))
    expect(texts).toContain('glob: *.yml')
    expect(texts).toContain('the child is done')
    expect(client.textOf(sessionId)).toBe('all is done')
    expect(usage).toEqual({ inputTokens: 40, outputTokens: 20 })
  })
})

describe('a depth from another process', () => {
  test('counts for the limit of delegations', async () => {
    const { server, client } = await session({
      entries: children.replace('provider: spawn', 'provider: spawn, maxDepth: 2'),
      script: (_, index) => (index === 0 ? { calls: [delegation('deeper')] } : 'done'),
    })
    const sessionId = await client.open(server.folder, { 'dsh/depth': 2 })

    await client.prompt(sessionId, 'go')

    const end = client.updates(sessionId, 'tool_call_update').at(-1)
    expect(end?.status).toBe('failed')
    expect(JSON.stringify(end)).toContain('deeper than maxDepth 2 allows')
  })
})

describe('a tool that asks', () => {
  test('waits for the answer, shows what it would do, and runs when it is allowed', async () => {
    const { server, client, sessionId } = await session({
      entries: files,
      ask: ['write'],
      answer: () => choose('allow_once'),
      script: [{ calls: [{ name: 'write', input: { path: 'a', content: 'x' } }] }, 'done'],
    })

    await client.prompt(sessionId, 'go')

    const [call] = client.updates(sessionId, 'tool_call')
    const path = join(server.folder, 'a')
    expect(call?.status).toBe('pending')
    expect(client.questions).toMatchObject([
      {
        sessionId,
        toolCall: {
          toolCallId: call?.toolCallId,
          title: 'write a',
          content: [{ type: 'diff', path, newText: 'x' }],
        },
        options: ['allow_once', 'allow_always', 'reject_once', 'reject_always'].map((kind) => ({
          kind,
        })),
      },
    ])
    const states = client.updates(sessionId, 'tool_call_update').map(({ status }) => status)
    expect(states.slice(-2)).toEqual(['in_progress', 'completed'])
    expect(await readFile(path, 'utf8')).toBe('x')
  })

  test.each([
    ['allow_once', 2, 2, []],
    ['allow_always', 1, 2, []],
    ['reject_once', 2, 0, [/does not allow this call/, /does not allow this call/]],
    ['reject_always', 1, 0, [/allows no call/, /allows no call/]],
  ])('answered with %s asks %i times for two calls, of which %i run', async (...row) => {
    const [optionId, questions, runs, reasons] = row
    const { server, client, sessionId } = await session({
      ask: ['count'],
      answer: () => choose(optionId),
      counts: true,
      script: [{ calls: [{ name: 'count' }] }, { calls: [{ name: 'count' }] }, 'done'],
    })

    await client.prompt(sessionId, 'go')

    expect(client.questions).toHaveLength(questions)
    expect(server.runs()).toBe(runs)
    expect(failures(client, sessionId)).toEqual(reasons.map((why) => expect.stringMatching(why)))
  })

  test('asks once for parallel calls when the first answer holds for good', async () => {
    const { server, client, sessionId } = await session({
      ask: ['count'],
      answer: () => choose('allow_always'),
      counts: true,
      script: [{ calls: [{ name: 'count' }, { name: 'count' }, { name: 'count' }] }, 'done'],
    })

    await client.prompt(sessionId, 'go')

    expect(client.questions).toHaveLength(1)
    expect(server.runs()).toBe(3)
  })

  test('remembers an answer in its session only', async () => {
    const { server, client, sessionId } = await session({
      ask: ['count'],
      answer: () => choose('allow_always'),
      counts: true,
      script: (_, index) => (index === 0 ? { calls: [{ name: 'count' }] } : 'done'),
    })
    const other = await client.open(server.folder)

    await client.prompt(sessionId, 'go')
    await client.prompt(other, 'go')

    expect(client.questions.map((question) => question.sessionId)).toEqual([sessionId, other])
  })

  test.each<[string, Answer, RegExp]>([
    ['no answer', () => ({ outcome: { outcome: 'cancelled' } }), /does not allow this call of/],
    ['an option that was not offered', () => choose('yes'), /does not allow this call of/],
    [
      'an error',
      () => {
        throw new Error('broken')
      },
      /could not be asked/,
    ],
  ])('%s refuses the call, and the turn goes on', async (_, answer, why) => {
    const { server, client, sessionId } = await session({
      ask: ['count'],
      answer,
      counts: true,
      script: [{ calls: [{ name: 'count' }] }, 'done'],
    })

    const { stopReason } = await client.prompt(sessionId, 'go')

    expect(server.runs()).toBe(0)
    expect(failures(client, sessionId)).toEqual([expect.stringMatching(why)])
    expect(stopReason).toBe('end_turn')
  })

  test('is not run when the turn is cancelled while the question is open', async () => {
    const { server, client, sessionId } = await session({
      ask: ['count'],
      answer: () => new Promise<never>(() => {}),
      counts: true,
      script: [{ calls: [{ name: 'count' }, { name: 'count' }] }, 'never'],
    })
    const turn = client.prompt(sessionId, 'go')
    await waitFor('it asks', () => client.questions.length > 0)

    await client.agent.notify('session/cancel', { sessionId })

    expect(await turn).toMatchObject({ stopReason: 'cancelled' })
    expect(client.questions).toHaveLength(1)
    expect(server.runs()).toBe(0)
    const states = client.updates(sessionId, 'tool_call_update').map(({ status }) => status)
    expect(states).toEqual(['failed', 'failed'])
  })

  test('asks for a child in the session of its parent, and shows that one call', async () => {
    const { server, client, sessionId } = await session({
      entries: children,
      ask: ['count'],
      answer: () => choose('allow_once'),
      counts: true,
      script: ({ messages }, index) => {
        if (index > 0) return 'done'
        const isChild = JSON.stringify(messages[0]).includes('count it')
        return { calls: [isChild ? { name: 'count' } : delegation('count it')] }
      },
    })

    await client.prompt(sessionId, 'go')

    expect(server.runs()).toBe(1)
    const [question] = client.questions
    const calls = client.updates(sessionId, 'tool_call')
    expect(calls.map(({ name }) => name)).toEqual(['subagent', 'count'])
    expect(question).toMatchObject({ sessionId, toolCall: { toolCallId: calls[1]?.toolCallId } })
    const states = client
      .updates(sessionId, 'tool_call_update')
      .filter(({ toolCallId }) => toolCallId === calls[1]?.toolCallId)
      .map(({ status }) => status)
    expect(states).toEqual(['in_progress', 'completed'])
  })

  test('does not concern agents of others', async () => {
    const { server, client } = await session({
      ask: ['count'],
      counts: true,
      script: (_, index) => (index === 0 ? { calls: [{ name: 'count' }] } : 'done'),
    })
    const { agent, dispose } = server.ctx.agents.create({ cwd: server.folder })

    await agent.send('go')
    await dispose()

    expect(server.runs()).toBe(1)
    expect(client.questions).toEqual([])
    expect(client.notifications).toEqual([])
  })
})

interface Setup {
  readonly entries?: string
  readonly ask?: string[]
  readonly answer?: Answer
  /** Registers a tool that counts its runs. */
  readonly counts?: boolean
  readonly script: Parameters<typeof scriptedModel>[0]
}

async function session({ entries, ask = [], answer, counts, script }: Setup): Promise<{
  server: Server & { runs: () => number }
  client: Client
  sessionId: string
}> {
  let count = 0
  const server = await startServer({
    models: [scriptedModel(script)],
    ...(entries !== undefined && { entries }),
    config: { ask },
    prepare: (ctx) => {
      if (counts !== true) return
      ctx.tools.register({
        name: 'count',
        description: 'counts',
        parameters: z.object({}),
        parallel: true,
        execute: async () => textResult(String((count += 1))),
      })
    },
  })
  const client = await connect(server, answer)
  const sessionId = await client.open(server.folder)
  return { server: { ...server, runs: () => count }, client, sessionId }
}

function choose(optionId: string) {
  return { outcome: { outcome: 'selected' as const, optionId } }
}

function delegation(prompt: string) {
  return { name: 'subagent', input: { description: 'a task', prompt } }
}

/** The texts of the calls that failed. */
function failures(client: Client, sessionId: string): string[] {
  return client
    .updates(sessionId, 'tool_call_update')
    .filter(({ status }) => status === 'failed')
    .map(({ content }) => JSON.stringify(content))
}
