import { methods } from '@agentclientprotocol/sdk'
import type { SessionId, StoredSessionInfo } from '@deepseek-ai/dsh-session'
import { scriptedModel, temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { pageOf } from '../src/listing.ts'
import { connect, refusal, startServer } from './helpers.ts'

const { list } = methods.agent.session
const entries = `- name: '@deepseek-ai/dsh-session-jsonl'
  config: { root: sessions }
`

function infoOf(id: string, updatedAt: number, overrides: object = {}): StoredSessionInfo {
  const header = { id: id as SessionId, createdAt: 0, cwd: '/work', delegationDepth: 0 }
  return { header: { ...header, ...overrides }, title: `title of ${id}`, updatedAt }
}

/** Sessions of which the last changed first, as a store gives them; two at a time changed together. */
const many = Array.from({ length: 120 }, (_, index) =>
  infoOf(`s-${String(index).padStart(3, '0')}`, 1000 - Math.floor(index / 2)),
)

function allPages(stored: (page: number) => readonly StoredSessionInfo[]): string[][] {
  const pages: string[][] = []
  let cursor: string | null | undefined
  do {
    const { sessions, nextCursor } = pageOf(stored(pages.length), { cursor })
    pages.push(sessions.map(({ sessionId }) => sessionId))
    cursor = nextCursor
  } while (cursor !== undefined)
  return pages
}

describe('session/list', () => {
  test('is not offered without a store', async () => {
    const server = await startServer({ models: [scriptedModel([])] })
    const { agent } = await connect(server)

    const hello = await agent.request(methods.agent.initialize, { protocolVersion: 1 })
    const error = await refusal(agent.request(list, {}))

    expect(hello.agentCapabilities?.sessionCapabilities).toEqual({ close: {} })
    expect(error).toMatchObject({ code: -32601 })
  })

  test('tells the sessions that were stored, those of other processes too', async () => {
    const first = await startServer({ entries, models: [scriptedModel(['hello'])] })
    const earlier = await connect(first)
    const sessionId = await earlier.open(first.folder)
    await earlier.prompt(sessionId, 'good morning')
    await earlier.open(first.folder)
    first.stdin.end()
    await first.code
    const server = await startServer({ folder: first.folder, models: [scriptedModel([])] })
    const { agent } = await connect(server)

    const hello = await agent.request(methods.agent.initialize, { protocolVersion: 1 })
    const listed = await agent.request(list, {})

    expect(hello.agentCapabilities?.sessionCapabilities).toHaveProperty('list', {})
    expect(listed).toEqual({
      sessions: [
        {
          sessionId,
          cwd: first.folder,
          title: 'good morning',
          updatedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        },
      ],
    })
    const [info] = listed.sessions
    await agent.request(methods.agent.session.load, { ...info!, mcpServers: [] })
  })

  test('tells those of one folder when it is asked for it', async () => {
    const server = await startServer({ entries, models: [scriptedModel(() => 'ok')] })
    const client = await connect(server)
    const other = await temporaryFolder()
    const ids = [await client.open(server.folder), await client.open(other)]
    for (const id of ids) await client.prompt(id, 'hi')

    const { sessions } = await client.agent.request(list, { cwd: `${other}/` })
    const error = await refusal(client.agent.request(list, { cwd: 'work' }))

    expect(sessions.map(({ sessionId }) => sessionId)).toEqual([ids[1]])
    expect(error).toMatchObject({ code: -32602, message: 'cwd "work" is not an absolute path' })
  })

  test('tells no children, neither ours nor those of another process', async () => {
    const model = scriptedModel(({ messages }) =>
      JSON.stringify(messages).includes('delegate') && messages.length === 1
        ? { calls: [{ name: 'subagent', input: { description: 'work', prompt: 'work' } }] }
        : 'done',
    )
    const more = `- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: spawn }
`
    const server = await startServer({ entries: entries + more, models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    await client.prompt(sessionId, 'delegate it')
    await client.prompt(await client.open(server.folder, { 'dsh/depth': 1 }), 'hi')

    const stored = await server.ctx.sessions.listStored()
    const { sessions } = await client.agent.request(list, {})

    expect(stored).toHaveLength(3)
    expect(sessions.map((session) => session.sessionId)).toEqual([sessionId])
  })

  test('gives pages that have each session once', () => {
    const pages = allPages(() => many)

    expect(pages.map(({ length }) => length)).toEqual([50, 50, 20])
    expect(pages.flat()).toEqual(many.map(({ header }) => header.id))
  })

  test('gives pages that stay whole when sessions come, change and go between them', () => {
    const changed = infoOf('s-070', 2000)
    const later = [infoOf('new', 3000), changed, ...many.filter((_, at) => at !== 49 && at !== 70)]

    const [first, ...rest] = allPages((page) => (page === 0 ? many : later))

    expect(first).toContain('s-049')
    expect(rest.flat()).toEqual(
      many.slice(50).flatMap(({ header: { id } }) => (id === 's-070' ? [] : [id])),
    )
  })

  test.each(['', 'what?', Buffer.from('[1]').toString('base64url')])(
    'refuses the cursor "%s" that it did not give',
    (cursor) => {
      expect(() => pageOf(many, { cursor })).toThrow(
        expect.objectContaining({
          code: -32602,
          message: `the cursor "${cursor}" is not from this list`,
        }) as Error,
      )
    },
  )

  test('leaves out a title that is not known', () => {
    const { sessions } = pageOf([{ ...infoOf('a', 0), title: '' }], {})

    expect(sessions).toEqual([
      { sessionId: 'a', cwd: '/work', updatedAt: '1970-01-01T00:00:00.000Z' },
    ])
  })
})
