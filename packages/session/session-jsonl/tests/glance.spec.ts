import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { glanceAtAll } from '../src/glance.ts'
import {
  appendTurn,
  createHost,
  createSession,
  idOf,
  leaveBehind,
  openFiles,
  watchReads,
} from './helpers.ts'

async function createRoot(): Promise<string> {
  return join(await temporaryFolder(), 'sessions')
}

describe('glanceAtAll', () => {
  test('finds nothing in a folder that is not there', async () => {
    expect(await glanceAtAll('/nowhere')).toEqual([])
  })

  test('tells the header, the start of the first message, and when the last event was', async () => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session, '  What is\n\tthis? ')
    appendTurn(session, 'And that?')
    leaveBehind(root, session)

    expect(await glanceAtAll(root)).toEqual([
      { header: session.header, title: 'What is this?', updatedAt: session.at(11)?.time },
    ])
  })

  test('calls a child by its label', async () => {
    const root = await createRoot()
    const origin = { provider: 'spawn', label: 'the label' }
    const parent = { parentSession: idOf('parent'), delegationDepth: 1 }
    const session = createSession({ ...parent, origin })
    appendTurn(session, 'the task')
    leaveBehind(root, session)

    expect(await glanceAtAll(root)).toMatchObject([{ title: 'the label', header: parent }])
  })

  test('reads the beginning and the end of a log, and nothing of what is between', async () => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session, 'short')
    for (let turn = 0; turn < 20; turn += 1) appendTurn(session, 'x'.repeat(100_000))
    leaveBehind(root, session)
    const read = watchReads()

    const [info] = await glanceAtAll(root)

    expect(info).toMatchObject({ title: 'short', updatedAt: session.at(session.length - 1)?.time })
    expect(read()).toBe((16 + 4) * 1024)
  })

  test('reads on until the first message is whole, to a limit', async () => {
    const root = await createRoot()
    const long = createSession({ id: idOf('long') })
    appendTurn(long, `begin ${'x'.repeat(100_000)}`)
    leaveBehind(root, long)
    const endless = createSession({ id: idOf('endless') })
    appendTurn(endless, 'x'.repeat(1_000_000))
    leaveBehind(root, endless)

    const titles = Object.fromEntries(
      (await glanceAtAll(root)).map(({ header, title }) => [header.id, title]),
    )

    expect(titles['long']).toMatch(/^begin x{194}$/)
    expect(titles['endless']).toBe('')
  })

  test('takes the time of the file when its last line tells none', async () => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session, 'x'.repeat(10_000), true)
    session.append('user/message', { content: [{ type: 'text', text: 'x'.repeat(10_000) }] })
    const file = leaveBehind(root, session)
    utimesSync(file, 1, 7)

    expect(await glanceAtAll(root)).toMatchObject([{ updatedAt: 7000 }])
  })

  test('is not misled by a torn last line', async () => {
    const root = await createRoot()
    const session = createSession()
    appendTurn(session)
    appendFileSync(leaveBehind(root, session), '{"seq":6,"ti')

    expect(await glanceAtAll(root)).toMatchObject([{ updatedAt: session.at(5)?.time }])
  })

  test('leaves out what cannot be read, and closes it', async () => {
    const root = await createRoot()
    leaveBehind(root, createSession({ id: idOf('good') }))
    writeFileSync(join(root, 'empty.jsonl'), '')
    writeFileSync(join(root, 'torn.jsonl'), '{"type":"session"')
    writeFileSync(join(root, 'broken.jsonl'), 'nothing\n')
    writeFileSync(join(root, 'no id!.jsonl'), '')
    mkdirSync(join(root, 'folder.jsonl'))
    execFileSync('mkfifo', [join(root, 'pipe.jsonl')])
    writeFileSync(
      join(root, 'other.jsonl'),
      '{"type":"session","version":1,"header":{"id":"x","createdAt":1,"cwd":"/","delegationDepth":0}}\n',
    )
    const open = openFiles()

    expect((await glanceAtAll(root)).map(({ header }) => header.id)).toEqual(['good'])
    expect(openFiles()).toEqual(open)
  })

  test('finds each of many sessions', async () => {
    const root = await createRoot()
    const ids = Array.from({ length: 100 }, (_, index) => `s-${index}`)
    for (const id of ids) leaveBehind(root, createSession({ id: idOf(id) }))

    const found = (await glanceAtAll(root)).map(({ header }) => header.id)

    expect(new Set(found)).toEqual(new Set(ids))
  })
})

test('ctx.sessions tells the stored sessions, live or not, with their parents', async () => {
  const { ctx, createAgent } = await createHost()
  const parent = createAgent()
  await parent.send('one')
  const run = ctx.subagents.start('spawn', { prompt: 'two', parent })
  await run.result
  await run.dispose()
  createAgent()

  const stored = await ctx.sessions.listStored()

  expect(new Set(stored.map(({ header, title }) => [header.parentSession, title].join()))).toEqual(
    new Set([',one', `${parent.id},two`]),
  )
})
