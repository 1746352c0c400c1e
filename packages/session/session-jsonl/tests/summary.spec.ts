import { execFileSync } from 'node:child_process'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gate, temporaryFolder, waitFor } from '@deepseek-ai/dsh-testkit'
import type { TurnEndReason } from '@deepseek-ai/dsh-session'
import { describe, expect, test } from 'vitest'
import { listSessions, type SessionListing, type SessionSummary } from '../src/index.ts'
import {
  appendOpenCalls,
  appendTurn,
  createHost,
  createSession,
  idOf,
  leaveBehind,
  namesIn,
} from './helpers.ts'

async function createRoot(): Promise<string> {
  return join(await temporaryFolder(), 'sessions')
}

function summaryIn({ sessions }: SessionListing, id: string): SessionSummary | undefined {
  return sessions.find(({ header }) => header.id === id)
}

describe('listSessions', () => {
  test('finds nothing in a folder that is not there', async () => {
    expect(await listSessions('/nowhere')).toEqual({ sessions: [], problems: [] })
  })

  test('tells of a session what it is, how it ended, and what it cost', async () => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session, '  What is\n\tthis? ')
    appendTurn(session, 'And that?')
    leaveBehind(root, session)

    const { sessions, problems } = await listSessions(root)

    expect(sessions).toEqual([
      {
        header: session.header,
        state: 'completed',
        updatedAt: session.at(11)?.time,
        turns: 2,
        usage: { inputTokens: 20, outputTokens: 10 },
        title: 'What is this?',
      },
    ])
    expect(problems).toEqual([])
  })

  test('is sorted by age, the oldest first', async () => {
    const root = await createRoot()
    for (const [id, createdAt] of [
      ['new', 3],
      ['old', 1],
      ['middle', 2],
    ] as const) {
      leaveBehind(root, createSession({ id: idOf(id), createdAt }))
    }

    const { sessions } = await listSessions(root)

    expect(sessions.map(({ header }) => header.id)).toEqual(['old', 'middle', 'new'])
  })

  test('names a child by its label', async () => {
    const root = await createRoot()
    const origin = { provider: 'spawn', label: 'look around' }
    const child = createSession({ parentSession: idOf('parent'), delegationDepth: 1, origin })
    appendTurn(child, 'a long task')
    leaveBehind(root, child)

    expect((await listSessions(root)).sessions[0]?.title).toBe('look around')
  })

  test('cuts a long title without breaking a character', async () => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session, `${'x'.repeat(199)}😀`)
    leaveBehind(root, session)

    expect((await listSessions(root)).sessions[0]?.title).toBe(`${'x'.repeat(199)}\ufffd`)
  })

  test.each<TurnEndReason>(['completed', 'aborted', 'error', 'max-tokens', 'interrupted'])(
    'calls a session whose last turn ended so %s',
    async (reason) => {
      const root = await createRoot()
      const session = createSession()
      appendTurn(session, 'hello', true)
      session.append('turn/end', { reason })
      leaveBehind(root, session)

      expect((await listSessions(root)).sessions[0]?.state).toBe(reason)
    },
  )

  test('calls a session without a turn empty, as old as its file', async () => {
    const root = await createRoot()
    leaveBehind(root, createSession())

    expect((await listSessions(root)).sessions[0]).toMatchObject({
      state: 'empty',
      updatedAt: 1000,
      turns: 0,
      title: '',
    })
  })

  test('calls nothing running that a crash has left, not even when its parent runs again', async () => {
    const root = await createRoot()
    const parent = createSession({ id: idOf('parent') })
    appendOpenCalls(parent, ['a'], 1)
    const child = createSession({ id: idOf('child'), parentSession: parent.id })
    appendOpenCalls(child, ['a'], 1)
    for (const session of [parent, child]) leaveBehind(root, session)
    expect((await listSessions(root)).sessions.map(({ state }) => state)).toEqual([
      'interrupted',
      'interrupted',
    ])

    const answer = gate()
    const { ctx } = await createHost(() => ({ until: answer.opened }), { root })
    const { agent } = await ctx.agents.resume(parent.id)
    const turn = agent.send('go on')
    await waitFor('it runs', async () => {
      return summaryIn(await listSessions(root), 'parent')?.state === 'running'
    })

    expect(summaryIn(await listSessions(root), 'child')?.state).toBe('interrupted')
    answer.open()
    await turn
    expect(summaryIn(await listSessions(root), 'parent')?.state).toBe('completed')
  })

  test('calls children running while they do', async () => {
    const answer = gate()
    const { ctx, createAgent, root } = await createHost(() => ({ until: answer.opened }))
    const parent = createAgent()
    const run = ctx.subagents.start('spawn', { prompt: 'work', parent })
    await waitFor('the child is on disk', () => namesIn(root).includes(`${run.id}.jsonl`))

    expect(summaryIn(await listSessions(root), run.id)?.state).toBe('running')

    answer.open()
    await run.dispose()
    expect(summaryIn(await listSessions(root), run.id)?.state).not.toBe('running')
  })

  test('tells what it cannot read, and lists the rest', async () => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session)
    const file = leaveBehind(root, session)
    writeFileSync(join(root, 'broken.jsonl'), 'nonsense\n')
    writeFileSync(join(root, 'bad name.jsonl'), '')
    writeFileSync(join(root, 'never-written.jsonl'), '')
    writeFileSync(`${file}.torn-1`, 'x')
    writeFileSync(join(root, 'notes.txt'), 'x')
    mkdirSync(join(root, 'folder.jsonl'))
    execFileSync('mkfifo', [join(root, 'pipe.jsonl')])
    writeFileSync(join(root, 'huge.jsonl'), '')
    truncateSync(join(root, 'huge.jsonl'), 600 * 1024 * 1024)

    const { sessions, problems } = await listSessions(root)

    expect(sessions.map(({ header }) => header.id)).toEqual(['one'])
    expect(problems.toSorted()).toEqual([
      expect.stringContaining(`${join(root, 'broken.jsonl')}:1: the session cannot be read`),
      expect.stringContaining(`${join(root, 'folder.jsonl')}:1: the session cannot be read`),
      expect.stringMatching(/huge\.jsonl:1: .*: it has 629145600 bytes, of which \d+ at most/),
      expect.stringMatching(/pipe\.jsonl:1: .*: it is no regular file/),
      expect.stringContaining('session id "bad name" must be of 1 to 128 letters'),
    ])
  })

  test('hands on what the file system says of the folder', async () => {
    await expect(listSessions('/dev/null')).rejects.toThrow('ENOTDIR')
  })
})
