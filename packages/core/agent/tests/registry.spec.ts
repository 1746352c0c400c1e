import { LlmError } from '@deepseek-ai/dsh-llm'
import { SessionError, type SessionId } from '@deepseek-ai/dsh-session'
import { gate, scriptedModel } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { AgentError, type CreateAgentOptions } from '../src/index.ts'
import { createDriver, createRegistry, createStore, type Setup } from './helpers.ts'

const id = 'one' as SessionId

describe('AgentRegistry.create', () => {
  test('gives the driver a session of its own and complete options', () => {
    const driver = createDriver()
    const { registry, sessions } = createRegistry({ driver })
    const toolScope = { allows: () => false }

    const { agent } = registry.create({
      id,
      cwd: '/work',
      options: { temperature: 0.5, maxSteps: 3 },
      toolScope,
    })

    expect(driver.specs).toEqual([
      {
        session: sessions.get(id),
        options: { model: 'scripted', temperature: 0.5, maxSteps: 3 },
        toolScope,
      },
    ])
    expect(registry.get(id)).toBe(agent)
    expect(registry.list()).toEqual([agent])
  })

  test('hands lineage and seed on to the session', () => {
    const { registry } = createRegistry()
    const parent = registry.create({ cwd: '/' }).agent
    parent.session.append('turn/start', { turn: 1, model: 'scripted' })
    parent.session.append('turn/end', { reason: 'completed' })
    const seed = parent.session.completedTurns()!

    const { session } = registry.create({
      cwd: '/work',
      parentSession: parent.id,
      delegationDepth: 1,
      origin: { provider: 'fork' },
      seed,
    }).agent

    expect(session.header).toMatchObject({
      cwd: '/work',
      parentSession: parent.id,
      delegationDepth: 1,
      origin: { provider: 'fork' },
      seedLength: 2,
    })
    expect(session.at(1)).toBe(parent.session.at(1))
  })

  test.each<[string, string | undefined, string | undefined, string]>([
    ['the one that it is told', 'b', 'a', 'b'],
    ['the default of the config', undefined, 'a', 'a'],
  ])('takes for model %s', (_, asked, fallback, model) => {
    const { registry } = createRegistry({
      adapters: [scriptedModel([], 'a'), scriptedModel([], 'b')],
      defaults: { maxSteps: 10, ...(fallback !== undefined && { model: fallback }) },
    })

    const { agent } = registry.create({
      cwd: '/',
      ...(asked !== undefined && { options: { model: asked } }),
    })

    expect(agent.options).toEqual({ model, maxSteps: 10 })
  })

  const two = [scriptedModel([], 'a'), scriptedModel([], 'b')]

  test.each<[string, Parameters<typeof createRegistry>[0], CreateAgentOptions, Error]>([
    [
      'no loop is loaded',
      { driver: null },
      { cwd: '/' },
      new AgentError('NO_DRIVER', 'cannot create an agent: no agent loop is loaded'),
    ],
    [
      'no model is registered',
      { adapters: [] },
      { cwd: '/' },
      new AgentError(
        'NO_MODEL',
        'no model is registered: add an entry for a model adapter, "@deepseek-ai/dsh-llm-ai-sdk", or "@deepseek-ai/dsh-llm-scripted" for a script',
      ),
    ],
    [
      'several models are registered and none was chosen',
      { adapters: two },
      { cwd: '/' },
      new AgentError('NO_MODEL', 'no model was chosen: set "model" to one of a, b'),
    ],
    [
      'the model is unknown',
      { adapters: two },
      { cwd: '/', options: { model: 'c' } },
      new LlmError('UNKNOWN_MODEL', 'no model "c" (registered: a, b)'),
    ],
    [
      'the default model is unknown',
      { defaults: { model: 'gone', maxSteps: 1 } },
      { cwd: '/' },
      new LlmError('UNKNOWN_MODEL', 'no model "gone" (registered: scripted)'),
    ],
    [
      'the cwd is relative',
      {},
      { cwd: 'work' },
      new AgentError('INVALID_CWD', 'cwd must be an absolute path, not "work"'),
    ],
  ])('leaves nothing behind when %s', (_, setup, options, error) => {
    const { registry, sessions, told } = createRegistry(setup)

    expect(() => registry.create(options)).toThrow(error)

    expect(registry.list()).toEqual([])
    expect(sessions.list()).toEqual([])
    expect(told).toEqual([])
  })

  test('leaves no session when the driver throws', () => {
    const driver = createDriver()
    const { registry, sessions } = createRegistry({ driver })
    driver.create = () => {
      throw new Error('no engine')
    }

    expect(() => registry.create({ cwd: '/' })).toThrow('no engine')
    expect(sessions.list()).toEqual([])
    expect(registry.list()).toEqual([])
  })

  test('refuses an id that is live, and keeps the agent that has it', () => {
    const { registry } = createRegistry()
    const { agent } = registry.create({ id, cwd: '/' })

    expect(() => registry.create({ id, cwd: '/' })).toThrow(
      new SessionError('DUPLICATE_SESSION', 'session "one" is already live'),
    )

    expect(registry.list()).toEqual([agent])
  })
})

describe('AgentRegistry drivers', () => {
  test('are one at a time', () => {
    const first = createDriver()
    const second = createDriver()
    const { registry } = createRegistry({ driver: first })

    expect(() => registry.setDriver(second)).toThrow(
      new AgentError('DUPLICATE_DRIVER', 'an agent loop is already registered'),
    )
    registry.removeDriver(second)
    registry.create({ cwd: '/' })
    registry.removeDriver(first)
    registry.setDriver(second)
    registry.create({ cwd: '/' })

    expect([first.specs.length, second.specs.length]).toEqual([1, 1])
  })
})

describe('AgentHandle.dispose', () => {
  test('waits for the agent to stop before it forgets agent and session', async () => {
    const stopped = gate()
    const driver = createDriver({ stop: () => stopped.opened })
    const { registry, sessions, told } = createRegistry({ driver })
    const handle = registry.create({ cwd: '/' })

    const disposal = handle.dispose()
    const during = [registry.list().length, sessions.list().length]
    stopped.open()
    await disposal

    expect(during).toEqual([1, 1])
    expect(registry.list()).toEqual([])
    expect(sessions.list()).toEqual([])
    expect(told).toEqual(['agent/created', 'agent/disposed'])
  })

  test('gives the same promise each time, also to whom the cancel calls back', async () => {
    const disposals: Promise<void>[] = []
    const driver = createDriver({
      stop: async () => {
        disposals.push(handle.dispose())
      },
    })
    const { registry, told } = createRegistry({ driver })
    const handle = registry.create({ cwd: '/' })

    disposals.push(handle.dispose(), handle.dispose())
    await Promise.all(disposals)

    expect(new Set(disposals).size).toBe(1)
    expect(told).toEqual(['agent/created', 'agent/disposed'])
  })

  test('warns when the last events could not be stored, and does not reject', async () => {
    const { registry, sessions, told } = createRegistry()
    sessions.setStore(createStore({ close: () => Promise.reject(new Error('disk full')) }))
    const handle = registry.create({ id, cwd: '/' })

    await handle.dispose()

    expect(registry.list()).toEqual([])
    expect(told).toEqual([
      'agent/created',
      'the last events of session "one" were not stored',
      'agent/disposed',
    ])
  })
})

describe('AgentRegistry.disposeAll', () => {
  test('disposes also an agent that another one creates on its way out', async () => {
    const stop = async (): Promise<void> => {
      if (told.length === 1) registry.create({ cwd: '/' })
    }
    const { registry, told } = createRegistry({ driver: createDriver({ stop }) })
    registry.create({ cwd: '/' })

    await registry.disposeAll()

    expect(registry.list()).toEqual([])
    expect(told.filter((name) => name === 'agent/disposed')).toHaveLength(2)
  })
})

/** A registry whose store knows session "one": its last turn asked model `b`. */
async function createStored(driver = createDriver()): Promise<Setup> {
  const setup = createRegistry({
    driver,
    adapters: [scriptedModel([], 'a'), scriptedModel([], 'b')],
    defaults: { model: 'a', maxSteps: 10 },
  })
  setup.sessions.setStore(createStore())
  const { agent, dispose } = setup.registry.create({ id, cwd: '/work', delegationDepth: 2 })
  for (const [turn, model] of ['a', 'b'].entries()) {
    agent.session.append('turn/start', { turn: turn + 1, model })
    agent.session.append('turn/end', { reason: 'completed' })
  }
  await dispose()
  setup.told.length = 0
  return setup
}

const callOf = (callId: string): object => ({ type: 'tool-call', callId, name: 'bash', input: {} })

describe('AgentRegistry.resume', () => {
  test('continues a stored session with its cwd, its depth and its last model', async () => {
    const { registry, told } = await createStored()

    const { agent } = await registry.resume(id)

    expect(agent.session.header).toMatchObject({ id, cwd: '/work', delegationDepth: 2 })
    expect(agent.session.length).toBe(4)
    expect(agent.options).toEqual({ model: 'b', maxSteps: 10 })
    expect(told).toEqual(['agent/created'])
  })

  test.each([
    ['another model', { model: 'a' }, { model: 'a', maxSteps: 10 }],
    ['a model that is undefined', { model: undefined, maxSteps: 2 }, { model: 'b', maxSteps: 2 }],
  ])('takes %s from its options', async (_, options, expected) => {
    const { registry } = await createStored()

    const { agent } = await registry.resume(id, options)

    expect(agent.options).toEqual(expected)
  })

  test("keeps the filters of a child's tools, and gives others none", async () => {
    const driver = createDriver()
    const { registry } = await createStored(driver)
    const toolFilters = [{ deny: ['bash'] }]
    const origin = { provider: 'spawn', toolFilters }
    await registry.create({ id: 'child' as SessionId, cwd: '/', origin }).dispose()

    await registry.resume('child' as SessionId)
    await registry.resume(id)

    const [child, top] = driver.specs.slice(-2)
    expect(['bash', 'read'].filter((name) => child?.toolScope?.allows(name))).toEqual(['read'])
    expect(top?.toolScope).toBeUndefined()
  })

  test('takes the default model when the session never began a turn', async () => {
    const { registry } = await createStored()
    await registry.create({ id: 'fresh' as SessionId, cwd: '/' }).dispose()

    const { agent } = await registry.resume('fresh' as SessionId)

    expect(agent.model).toBe('a')
  })

  test('closes the turn that a crash left open, and answers each of its calls once', async () => {
    const crashed = await createStored()
    const { session } = crashed.registry.create({ id: 'crashed' as SessionId, cwd: '/' }).agent
    session.append('turn/start', { turn: 1, model: 'b' })
    session.append('user/message', { content: [{ type: 'text', text: 'go' }] })
    session.append('step/start', { step: 1 })
    session.append('assistant/message', {
      content: [callOf('a'), callOf('b')] as never,
      model: 'b',
      usage: { inputTokens: 1, outputTokens: 1 },
      finish: 'tool-calls',
    })
    session.append('tool/call', { callId: 'a', name: 'bash', input: {} })
    await crashed.sessions.release(session)

    const { agent } = await crashed.registry.resume(session.id)

    expect([...agent.session.events(5)]).toMatchObject([
      { seq: 5, type: 'tool/result', data: { callId: 'a', code: 'INTERRUPTED', isError: true } },
      { seq: 6, type: 'tool/call', data: { callId: 'b' } },
      { seq: 7, type: 'tool/result', data: { callId: 'b', code: 'INTERRUPTED', isError: true } },
      { seq: 8, type: 'step/end' },
      { seq: 9, type: 'turn/end', data: { reason: 'interrupted' } },
    ])
    expect(agent.session.completedLength).toBe(10)
  })

  test('closes an interrupted turn once, however often the session is resumed', async () => {
    const { registry, sessions } = await createStored()
    const { session } = registry.create({ id: 'crashed' as SessionId, cwd: '/' }).agent
    session.append('turn/start', { turn: 1, model: 'b' })
    await sessions.release(session)
    const first = await registry.resume(session.id)
    await first.dispose()

    const { agent } = await registry.resume(session.id)

    expect([...agent.session.events()].map(({ type }) => type)).toEqual(['turn/start', 'turn/end'])
  })

  test.each<[string, SessionId, string]>([
    ['is not stored', 'none' as SessionId, 'no session "none" is stored'],
    ['is live', 'live' as SessionId, 'session "live" is already live'],
  ])('refuses a session that %s', async (_, asked, message) => {
    const { registry } = await createStored()
    registry.create({ id: 'live' as SessionId, cwd: '/' })

    await expect(registry.resume(asked)).rejects.toThrow(message)

    expect(registry.list().map((agent) => agent.id)).toEqual(['live'])
  })

  test('lets one of two resumers have the session', async () => {
    const { registry } = await createStored()

    const outcomes = await Promise.allSettled([registry.resume(id), registry.resume(id)])

    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect(registry.list()).toHaveLength(1)
  })

  test('refuses when no store is loaded', async () => {
    const { registry } = createRegistry()

    await expect(registry.resume(id)).rejects.toThrow(
      new SessionError('NO_STORE', 'cannot load session "one": no session store is loaded'),
    )
  })

  test('uses the loop that is loaded once the session is, and none is no agent', async () => {
    const drivers = [createDriver(), createDriver()] as const
    const { registry, sessions } = createRegistry({ driver: drivers[0] })
    sessions.setStore(createStore())
    const { agent, dispose } = registry.create({ id, cwd: '/' })
    await dispose()

    const resumed = registry.resume(agent.id)
    registry.removeDriver(drivers[0])
    registry.setDriver(drivers[1])
    const handle = await resumed
    await handle.dispose()
    const orphan = registry.resume(agent.id)
    registry.removeDriver(drivers[1])

    await expect(orphan).rejects.toMatchObject({ code: 'NO_DRIVER' })
    await expect(registry.resume(agent.id)).rejects.toMatchObject({ code: 'NO_DRIVER' })
    expect(drivers.map(({ specs }) => specs.length)).toEqual([1, 1])
    expect(sessions.list()).toEqual([])
  })
})
