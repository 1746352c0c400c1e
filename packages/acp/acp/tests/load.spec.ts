import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type LoadSessionRequest, methods } from '@agentclientprotocol/sdk'
import type { SessionStore } from '@deepseek-ai/dsh-session'
import { gate, scriptedModel } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { type Client, connect, refusal, type Server, startServer } from './helpers.ts'

const { session } = methods.agent
const entries = `- name: '@deepseek-ai/dsh-session-jsonl'
  config: { root: sessions }
- name: '@deepseek-ai/dsh-fs-local'
- name: '@deepseek-ai/dsh-tool-fs'
`

describe('session/load', () => {
  test('tells the whole conversation anew, with the same ids, and goes on with it', async () => {
    const first = await stored()
    first.server.stdin.end()
    await first.server.code
    const server = await startServer({
      folder: first.server.folder,
      models: [scriptedModel(['I remember'])],
    })
    const client = await connect(server)
    const { sessionId } = first

    const loaded = await client.agent.request(session.load, params(first))
    const replayed = client.notifications.length
    const { stopReason } = await client.prompt(sessionId, 'and now?')

    expect(loaded.configOptions).toMatchObject([{ id: 'model', currentValue: 'scripted' }])
    const told = client.notifications.slice(0, replayed).map(({ update }) => update)
    const [thought, message, call, end, answer] = first.client.notifications.map(
      ({ update }) => update,
    )
    expect(told).toEqual([
      {
        sessionUpdate: 'user_message_chunk',
        messageId: expect.any(String),
        content: { type: 'text', text: 'read it' },
      },
      thought,
      message,
      { ...end, ...call, status: 'completed' },
      answer,
    ])
    expect(stopReason).toBe('end_turn')
    expect(client.textOf(sessionId)).toBe('a lookit says hiI remember')
  })

  test('closes what a crash left open', async () => {
    const { server, client } = await stored()
    const file = join(server.folder, 'sessions', 'crashed.jsonl')
    const header = { id: 'crashed', createdAt: 0, cwd: server.folder, delegationDepth: 0 }
    const input = { path: 'a.txt' }
    const call = { type: 'tool-call', callId: 'c', name: 'read', input }
    const usage = { inputTokens: 0, outputTokens: 0 }
    const events = [
      { type: 'turn/start', data: { turn: 1, model: 'scripted' } },
      { type: 'user/message', data: { content: [{ type: 'text', text: 'go' }] } },
      { type: 'step/start', data: { step: 1 } },
      {
        type: 'assistant/message',
        data: { content: [call], model: 'scripted', usage, finish: 'tool-calls' },
      },
      { type: 'tool/call', data: { callId: 'c', name: 'read', input } },
    ].map((event, seq) => JSON.stringify({ seq, time: 0, ...event }))
    const head = JSON.stringify({ type: 'session', version: 1, header })
    await writeFile(file, `${[head, ...events].join('\n')}\n`)

    await client.agent.request(session.load, params({ server, sessionId: 'crashed' }))

    expect(client.updates('crashed', 'tool_call')).toMatchObject([{ status: 'failed' }])
  })

  test('refuses an unknown session, one that is open, and one of another folder', async () => {
    const { server, sessionId, client } = await stored()

    const errors = [
      await refusal(client.agent.request(session.load, params({ server, sessionId: 'nobody' }))),
      await refusal(client.agent.request(session.load, params({ server, sessionId: '../../x' }))),
      await refusal(client.agent.request(session.load, params({ server, sessionId }))),
    ]
    await client.agent.request(session.close, { sessionId })
    const elsewhere = { sessionId, cwd: '/', mcpServers: [] }
    errors.push(await refusal(client.agent.request(session.load, elsewhere)))

    expect(errors).toMatchObject([
      { code: -32002, data: { sessionId: 'nobody' } },
      { code: -32002, data: { sessionId: '../../x' } },
      { code: -32600, message: expect.stringContaining('is open already') },
      { code: -32602, message: expect.stringContaining(`works in "${server.folder}", not in "/"`) },
    ])
    expect(server.ctx.agents.list()).toEqual([])
  })
})

describe('a session that a store brings late', () => {
  test('is disposed when the connection has closed meanwhile', async () => {
    const held = gate()
    const asked = gate()
    const server = await startServer({
      models: [scriptedModel([])],
      prepare: (ctx) =>
        void ctx.sessions.registerStore(
          storeThat(async (id) => {
            asked.open()
            await held.opened
            const header = { id, createdAt: 0, cwd: '/', delegationDepth: 0 }
            return { header, events: [] }
          }),
        ),
    })
    const client = await connect(server)
    const request = { sessionId: 'late', cwd: '/', mcpServers: [] }
    client.agent.request(session.load, request).catch(() => {})
    await asked.opened
    const disposed = new Promise<void>((resolve) => {
      server.ctx.on('agent/disposed', () => resolve())
    })

    server.stdin.end()
    await server.code
    held.open()

    await disposed
    expect(server.ctx.agents.list()).toEqual([])
  })
})

describe('a failure that nobody foresaw', () => {
  test('is told in general words, and in full on stderr', async () => {
    const server = await startServer({
      models: [scriptedModel([])],
      expectErrors: /the password is swordfish/,
      prepare: (ctx) =>
        void ctx.sessions.registerStore(
          storeThat(() => Promise.reject(new Error('the password is swordfish'))),
        ),
    })
    const client = await connect(server)
    const request = { sessionId: 'x', cwd: '/', mcpServers: [] }

    const error = await refusal(client.agent.request(session.load, request))

    expect(error).toMatchObject({ code: -32603, data: { code: 'INTERNAL' } })
    expect(server.lines().join()).not.toContain('swordfish')
  })
})

describe('session/resume', () => {
  test('goes on with a session without telling it anew', async () => {
    const { server, sessionId, client } = await stored()
    await client.agent.request(session.close, { sessionId })
    const before = client.notifications.length

    await client.agent.request(session.resume, params({ server, sessionId }))

    expect(client.notifications).toHaveLength(before)
    expect(server.ctx.agents.list().map(({ id }) => id)).toEqual([sessionId])
  })
})

interface Stored {
  readonly server: Server
  readonly client: Client
  readonly sessionId: string
}

/** A server with a session of one turn. */
async function stored(): Promise<Stored> {
  const model = scriptedModel([
    { reasoning: 'hm', text: 'a look', calls: [{ name: 'read', input: { path: 'a.txt' } }] },
    'it says hi',
  ])
  const server = await startServer({ entries, models: [model], files: { 'a.txt': 'hi\n' } })
  const client = await connect(server)
  const sessionId = await client.open(server.folder)
  await client.prompt(sessionId, 'read it')
  return { server, client, sessionId }
}

function params({ server, sessionId }: Pick<Stored, 'server' | 'sessionId'>): LoadSessionRequest {
  return { sessionId, cwd: server.folder, mcpServers: [] }
}

/** A store that keeps nothing, and loads in its own way what has an id. */
function storeThat(load: SessionStore['load']): SessionStore {
  return {
    open: () => {},
    append: () => {},
    flush: () => Promise.resolve(),
    close: () => Promise.resolve(),
    load,
  }
}
