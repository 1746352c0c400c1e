import { appendFileSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isHarnessError } from '@deepseek-ai/dsh-llm'
import { Session, type SessionId, type StoredSession } from '@deepseek-ai/dsh-session'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { FileStore } from '../src/store.ts'
import { appendTurn, createSession, idOf, namesIn } from './helpers.ts'

async function createStore(live: (id: SessionId) => Session | undefined = () => undefined) {
  const root = join(await temporaryFolder(), 'sessions')
  const warnings: string[] = []
  const options = { root, live, warn: (message: string) => void warnings.push(message) }
  const store = new FileStore(options)
  return { root, warnings, store, another: () => new FileStore(options) }
}

/** Stores a session and lets go of it. */
async function keep(store: FileStore, session: Session): Promise<Session> {
  store.open(session)
  appendTurn(session)
  await store.close(session)
  return session
}

function reopen({ header, seed, events }: StoredSession): Session {
  return new Session(header, () => {}, seed, events)
}

/** A session that begins with all events of its parent. */
function forkOf(parent: Session, id: string): Session {
  const header = { id: idOf(id), parentSession: parent.id, seedLength: parent.length }
  return createSession({ ...header, delegationDepth: 1 }, parent.completedTurns())
}

async function refusalOf(loading: Promise<unknown>): Promise<string> {
  const error: unknown = await loading.catch((reason: unknown) => reason)
  return isHarnessError(error) ? `${error.code} ${error.message}` : `not refused: ${String(error)}`
}

describe('FileStore', () => {
  test('loads what it has stored', async () => {
    const { store } = await createStore()
    const session = await keep(store, createSession())

    const stored = await store.load(session.id)

    expect(stored).toStrictEqual({ header: session.header, events: [...session.events()] })
  })

  test('loads a fork with the events of its parents, over generations', async () => {
    const { store } = await createStore()
    const parent = await keep(store, createSession())
    const child = await keep(store, forkOf(parent, 'two'))
    const grandchild = await keep(store, forkOf(child, 'three'))

    const { events, seed } = await store.load(grandchild.id)

    expect(events).toHaveLength(6)
    expect(seed?.length).toBe(12)
    expect([...seed!.session.events()]).toEqual([...child.events()])
  })

  test('shares the log of a parent that is live', async () => {
    const parent = createSession()
    appendTurn(parent)
    const { store } = await createStore((id) => (id === parent.id ? parent : undefined))
    const child = await keep(store, forkOf(parent, 'two'))

    const { seed } = await store.load(child.id)

    expect(seed?.session).toBe(parent)
    expect(seed?.length).toBe(6)
  })

  test('refuses a fork whose parent is gone', async () => {
    const { store, root } = await createStore()
    const parent = await keep(store, createSession())
    const child = await keep(store, forkOf(parent, 'two'))
    rmSync(join(root, 'one.jsonl'))

    expect(await refusalOf(store.load(child.id))).toBe(
      `SESSION_CORRUPT the fork "two" cannot be read without its parent: no session "one" in "${root}"`,
    )
  })

  test('refuses a fork whose parent has fewer events than it inherited', async () => {
    const { store, root } = await createStore()
    const parent = createSession()
    appendTurn(parent)
    appendTurn(parent)
    const child = await keep(store, forkOf(parent, 'two'))
    await keep(store, createSession())

    expect(await refusalOf(store.load(child.id))).toBe(
      `SESSION_CORRUPT the fork "two" cannot be read without its parent: it needs 12 events of "${join(root, 'one.jsonl')}", which has 6`,
    )
  })

  test.each([
    ['itself', 'two', 'two'],
    ['a child of its own', 'three', 'two'],
    ['parents that name each other', 'four', 'four'],
    ['nobody', undefined, 'nobody'],
  ])('refuses a fork that names %s as its parent', async (_, parentOfTwo, told) => {
    const { store } = await createStore()
    const link = async (id: string, parent: string | undefined): Promise<void> => {
      const parentSession = parent as SessionId
      await keep(store, createSession({ id: idOf(id), parentSession, seedLength: 0 }))
    }
    await link('two', parentOfTwo)
    await link('three', 'two')
    await link('four', 'five')
    await link('five', 'four')

    const refusal = await refusalOf(store.load(idOf('two')))

    expect(refusal).toContain('SESSION_CORRUPT the fork "two" cannot be read without its parent: ')
    expect(refusal).toContain(`it names "${told}" as its parent`)
  })

  test('tells a torn last line when it loads, and changes nothing before the session goes on', async () => {
    const { store, root, warnings } = await createStore()
    const { id } = await keep(store, createSession())
    const file = join(root, 'one.jsonl')
    appendFileSync(file, '{"seq"')
    const before = readFileSync(file)

    const { events } = await store.load(id)

    expect(events).toHaveLength(6)
    expect(warnings).toEqual([
      `${file}:8: the last line is torn: it is kept in a file beside this one`,
    ])
    expect(readFileSync(file)).toEqual(before)
    expect(namesIn(root)).toEqual(['one.jsonl'])
  })

  test('refuses to load a session that is live', async () => {
    const session = createSession()
    const { store } = await createStore(() => session)

    expect(await refusalOf(store.load(session.id))).toBe(
      'DUPLICATE_SESSION session "one" is already live',
    )
  })

  test('refuses to load a session that another store writes', async () => {
    const { store, another } = await createStore()
    const session = createSession()
    store.open(session)
    appendTurn(session)
    await store.flush(session)

    expect(await refusalOf(another().load(session.id))).toContain('SESSION_IN_USE')

    await store.close(session)
    expect(await refusalOf(another().load(session.id))).toContain('not refused')
  })

  test('lets the first of two that resume a session have it', async () => {
    const { store, another } = await createStore()
    const { id } = await keep(store, createSession())
    const second = another()
    const [one, two] = await Promise.all([store.load(id), second.load(id)])
    const first = reopen(one)

    store.open(first)

    expect(() => second.open(reopen(two))).toThrow('is being written by process')
    await store.close(first)
  })

  test('refuses an id that is no file name before the session lives', async () => {
    const { store } = await createStore()

    expect(() => store.open(createSession({ id: idOf('../one') }))).toThrow(
      'session id "../one" must be of 1 to 128 letters',
    )
  })

  test('writes nothing for a session that has ended', async () => {
    const { store, root } = await createStore()
    const session = await keep(store, createSession())
    const before = readFileSync(join(root, 'one.jsonl'))
    appendTurn(session)

    store.retire()
    await store.flush(session)

    expect(readFileSync(join(root, 'one.jsonl'))).toEqual(before)
  })

  test('does nothing for a session that it does not have', async () => {
    const { store, root } = await createStore()
    const session = createSession()
    appendTurn(session)

    store.append(session, session.at(0)!)
    await store.flush(session)
    await store.close(session)

    expect(() => readdirSync(root)).toThrow('ENOENT')
  })
})
