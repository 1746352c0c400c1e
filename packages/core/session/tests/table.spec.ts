import type { Notify } from '@deepseek-ai/dsh-llm'
import { describe, expect, test, vi } from 'vitest'
import { SessionError, type SessionId, SessionTable, type StoredSessionInfo } from '../src/index.ts'
import { appendTurn, createHeader, createStore, typesOf } from './helpers.ts'

const id = 'one' as SessionId

function createTable(): { table: SessionTable; told: string[] } {
  const told: string[] = []
  const notify = ((name: string) => void told.push(name)) as Notify
  const table = new SessionTable(notify)
  return { table, told }
}

function infoOf(name: string, updatedAt: number): StoredSessionInfo {
  return { header: createHeader({ id: name as SessionId }), title: name, updatedAt }
}

function failToOpen(): void {
  throw new Error('read-only disk')
}

describe('SessionTable', () => {
  test('writes into the header what it is told, and nothing else', () => {
    const { table } = createTable()
    const parent = table.prepare({ cwd: '/parent' })
    appendTurn(parent, 'one')

    const plain = table.prepare({ cwd: '/work' })
    const child = table.prepare({
      id,
      cwd: '/child',
      parentSession: parent.id,
      delegationDepth: 1,
      origin: { provider: 'fork', callId: 'call', label: 'look' },
      seed: parent.completedTurns()!,
    })

    expect(plain.header).toStrictEqual({
      id: plain.id,
      createdAt: expect.any(Number) as number,
      cwd: '/work',
      delegationDepth: 0,
    })
    expect(child.header).toStrictEqual({
      id,
      createdAt: expect.any(Number) as number,
      cwd: '/child',
      parentSession: parent.id,
      seedLength: 6,
      delegationDepth: 1,
      origin: { provider: 'fork', callId: 'call', label: 'look' },
    })
    expect(Object.isFrozen(child.header)).toBe(true)
  })

  test('freezes all of the header, and copies what it is told', () => {
    const { table } = createTable()
    const allow = ['read']
    const origin = { provider: 'spawn', label: 'half \uD83D', toolFilters: [{ allow }] }

    const { header } = table.prepare({ cwd: '/', origin })
    allow.push('bash')

    expect(header.origin?.toolFilters).toEqual([{ allow: ['read'] }])
    expect(Object.isFrozen(header.origin?.toolFilters?.[0]?.allow)).toBe(true)
    expect(header.origin?.label).toBe('half \uFFFD')
  })

  test('gives each session an id of its own', () => {
    const { table } = createTable()

    const sessions = [table.prepare({ cwd: '/' }), table.prepare({ cwd: '/' })]

    expect(sessions[0]!.id).not.toBe(sessions[1]!.id)
    expect(table.list()).toEqual(sessions)
    expect(table.get(sessions[1]!.id)).toBe(sessions[1])
  })

  test('refuses an id that is live, prepared or reopened', async () => {
    const { table } = createTable()
    const session = table.prepare({ id, cwd: '/' })
    const refusal = new SessionError('DUPLICATE_SESSION', 'session "one" is already live')

    expect(() => table.prepare({ id, cwd: '/' })).toThrow(refusal)
    expect(() => table.reopen({ header: createHeader(), events: [] })).toThrow(refusal)

    await table.release(session)
    expect(table.prepare({ id, cwd: '/' }).id).toBe(id)
  })

  test('tells of sessions that come and go, and of their events', async () => {
    const { table, told } = createTable()

    const session = table.prepare({ cwd: '/' })
    session.append('turn/start', { turn: 1, model: 'model' })
    await table.release(session)
    await table.release(session)

    expect(told).toEqual(['session/created', 'session/event', 'session/released'])
    expect(table.list()).toEqual([])
  })

  test('takes up a stored session where it ended', () => {
    const { table } = createTable()
    const stored = table.prepare({ cwd: '/' })
    appendTurn(stored, 'one')

    const session = table.reopen({ header: createHeader(), events: [...stored.events()] })

    expect(session.id).toBe(id)
    expect(typesOf(session.events())).toEqual(typesOf(stored.events()))
    expect(session.completedTurns()).toEqual({ session, length: 6 })
  })

  test('works without a store', async () => {
    const { table } = createTable()
    const session = table.prepare({ cwd: '/' })

    expect(table.flush(session)).toBeUndefined()
    expect(table.isStored(session.id)).toBe(false)
    expect(() => table.load(id)).toThrow(
      new SessionError('NO_STORE', 'cannot load session "one": no session store is loaded'),
    )
    await expect(table.release(session)).resolves.toBeUndefined()
  })
})

describe('SessionTable store', () => {
  test('hears of a session from its first event to its end', async () => {
    const { table } = createTable()
    const store = createStore()
    table.setStore(store)

    const session = table.prepare({ id, cwd: '/' })
    session.append('turn/start', { turn: 1, model: 'model' })
    session.append('turn/end', { reason: 'completed' })
    await table.flush(session)
    await table.release(session)

    expect(store.log).toEqual([
      'open one at 0',
      'append one 0 turn/start',
      'append one 1 turn/end',
      'flush one',
      'close one',
    ])
  })

  test('is given the live sessions when it comes late', () => {
    const { table } = createTable()
    const session = table.prepare({ id, cwd: '/' })
    appendTurn(session, 'one')
    const store = createStore()

    table.setStore(store)
    session.append('turn/start', { turn: 2, model: 'model' })

    expect(store.log).toEqual(['open one at 6', 'append one 6 turn/start'])
  })

  test('is one at a time, until it is removed', () => {
    const { table } = createTable()
    const first = createStore()
    const second = createStore()
    table.setStore(first)

    expect(() => table.setStore(second)).toThrow(
      new SessionError('DUPLICATE_STORE', 'a session store is already registered'),
    )
    table.removeStore(second)
    table.prepare({ id, cwd: '/' })
    table.removeStore(first)
    table.setStore(second)
    table.prepare({ id: 'two' as SessionId, cwd: '/' })

    expect(first.log).toEqual(['open one at 0'])
    expect(second.log).toEqual(['open two at 0'])
  })

  test('keeps a session to its end, also when it is removed before', async () => {
    const { table } = createTable()
    const store = createStore()
    table.setStore(store)
    const session = table.prepare({ id, cwd: '/' })

    table.removeStore(store)
    session.append('turn/start', { turn: 1, model: 'model' })
    await table.flush(session)
    await table.release(session)

    expect(store.log).toEqual([
      'open one at 0',
      'append one 0 turn/start',
      'flush one',
      'close one',
    ])
  })

  test('is not registered when it cannot open a live session', () => {
    const { table } = createTable()
    table.prepare({ id, cwd: '/' })

    expect(() => table.setStore(createStore({ open: failToOpen }))).toThrow('read-only disk')

    expect(() => table.setStore(createStore())).not.toThrow()
  })

  test('lets go of the live sessions that it had opened when it cannot open another', () => {
    const { table } = createTable()
    table.prepare({ id, cwd: '/' })
    table.prepare({ cwd: '/' })
    const open = vi
      .fn<() => void>()
      .mockImplementationOnce(() => {})
      .mockImplementation(failToOpen)
    const store = createStore({ open })

    expect(() => table.setStore(store)).toThrow('read-only disk')

    expect(store.log).toEqual([`close ${id}`])
  })

  test('leaves no session behind that it cannot open', () => {
    const { table, told } = createTable()
    const open = vi.fn<() => void>().mockImplementationOnce(failToOpen)
    table.setStore(createStore({ open }))

    expect(() => table.prepare({ id, cwd: '/' })).toThrow('read-only disk')

    expect(table.list()).toEqual([])
    expect(told).toEqual([])
    expect(table.prepare({ id, cwd: '/' }).id).toBe(id)
  })

  test('does not keep a session live that it fails to close', async () => {
    const { table, told } = createTable()
    table.setStore(createStore({ close: () => Promise.reject(new Error('disk full')) }))
    const session = table.prepare({ cwd: '/' })

    await expect(table.release(session)).rejects.toThrow('disk full')

    expect(table.list()).toEqual([])
    expect(told).toEqual(['session/created', 'session/released'])
  })

  test('loads what it has stored', async () => {
    const { table } = createTable()
    const store = createStore()
    table.setStore(store)
    const stored = { header: createHeader(), events: [] }
    store.stored.set(id, stored)

    await expect(table.load(id)).resolves.toBe(stored)
    await expect(table.load('two' as SessionId)).rejects.toThrow('nothing is stored for "two"')
  })

  test('lists what it has, the session that changed last first', async () => {
    const { table } = createTable()
    const infos = [infoOf('c', 1), infoOf('b', 1), infoOf('a', 2)]
    const store = createStore({ list: async () => infos })
    table.setStore(store)

    expect(table.hasStore).toBe(true)
    expect(table.canListStored).toBe(true)
    expect((await table.listStored()).map(({ title }) => title)).toEqual(['a', 'b', 'c'])
    table.removeStore(store)
    expect(table.hasStore).toBe(false)
    expect(table.canListStored).toBe(false)
  })

  test('is there, but lists nothing, when it does not know how', async () => {
    const { table } = createTable()
    table.setStore(createStore())

    expect(table.hasStore).toBe(true)
    expect(table.canListStored).toBe(false)
    await expect(table.listStored()).rejects.toThrow(
      new SessionError('NO_STORE', 'cannot list sessions: no session store that lists is loaded'),
    )
  })

  test('tells at each flush what a store threw while it took an event, and keeps the log', async () => {
    const { table, told } = createTable()
    const store = createStore()
    store.append = () => {
      throw new Error('no room')
    }
    table.setStore(store)
    const session = table.prepare({ cwd: '/' })

    appendTurn(session, 'hello')

    expect(session.lastTurnEnd).toBeDefined()
    expect(told).toContain('session/event')
    await expect(table.flush(session)).rejects.toThrow('no room')
    await expect(table.flush(session)).rejects.toThrow('no room')
  })
})
