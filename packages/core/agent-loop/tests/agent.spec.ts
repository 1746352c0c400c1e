import { AgentError, type AgentHandle } from '@deepseek-ai/dsh-agent'
import type { SessionId, TurnEnd } from '@deepseek-ai/dsh-session'
import { gate, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test, vi } from 'vitest'
import {
  collectWarnings,
  createHeldTool,
  createHost,
  createStore,
  createTool,
  type Host,
  impatient,
  type Script,
  settle,
  storyOf,
} from './helpers.ts'

const forever = new Promise<never>(() => {})
const usersAndTurns = (story: readonly string[]): string[] =>
  story.filter((line) => /^(turn|user)/.test(line))

describe('send', () => {
  test('makes one turn of the inputs of one tick', async () => {
    const { model, createAgent } = await createHost(['answer'])
    const agent = createAgent()

    const ends = await Promise.all([agent.send('one'), agent.send('two'), agent.steer('three')])

    expect(ends).toMatchObject([
      { reason: 'completed' },
      { reason: 'completed' },
      { reason: 'completed' },
    ])
    expect(model.requests).toHaveLength(1)
    expect(storyOf(agent).slice(0, 4)).toEqual(['turn 1', 'user: one', 'user: two', 'user: three'])
  })

  test('makes one turn of all that came while the last one ran', async () => {
    const held = gate()
    const { createAgent } = await createHost([{ text: 'one', until: held.opened }, 'two'])
    const agent = createAgent()
    const ends = [agent.send('first')]
    await settle()

    ends.push(agent.send('second'), agent.send('third'))
    held.open()
    await Promise.all(ends)

    expect(usersAndTurns(storyOf(agent))).toEqual([
      'turn 1',
      'user: first',
      'turn ends: completed',
      'turn 2',
      'user: second',
      'user: third',
      'turn ends: completed',
    ])
  })

  test('takes images as well as text, and copies what it is given', async () => {
    const { model, createAgent } = await createHost(['answer'])
    const content = [
      { type: 'text' as const, text: 'what is this?' },
      { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' },
    ]
    const agent = createAgent()

    const end = agent.send(content)
    content.pop()
    await end

    expect(model.requests[0]?.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'what is this?' },
          { type: 'image', mediaType: 'image/png', data: 'aGk=' },
        ],
      },
    ])
  })

  test('refuses what is no JSON at once, and changes nothing', async () => {
    const { createAgent } = await createHost([])
    const agent = createAgent()

    expect(() => agent.send([{ type: 'text', text: 1n as never }])).toThrow(
      'session data must be JSON: "input[0].text" is bigint',
    )

    expect(agent.status).toBe('idle')
    expect(agent.session.length).toBe(0)
  })

  test('tells how each turn ended, each to its own sender', async () => {
    const { createAgent } = await createHost(['fine', { finish: 'refusal' }, 'fine again'])
    const agent = createAgent()

    const ends = [await agent.send('1'), await agent.send('2'), await agent.send('3')]

    expect(ends.map(({ reason }) => reason)).toEqual(['completed', 'refusal', 'completed'])
  })

  test('takes input from listeners of agent/status, and tells all of them in order', async () => {
    const { ctx, createAgent } = await createHost(['one', 'two', 'three'])
    const agent = createAgent()
    const more = ['second', 'third']
    ctx.on('agent/status', ({ status }) => {
      const next = status === 'idle' ? more.shift() : undefined
      if (next !== undefined) void agent.send(next)
    })
    const heard: [string, string][] = []
    ctx.on('agent/status', ({ agent: { status: current }, status }) => {
      heard.push([status, current])
    })

    await agent.send('first')
    await agent.whenIdle()

    expect(usersAndTurns(storyOf(agent)).filter((line) => line.startsWith('user'))).toEqual([
      'user: first',
      'user: second',
      'user: third',
    ])
    expect(heard.map(([status]) => status)).toEqual([
      'running',
      'idle',
      'running',
      'idle',
      'running',
      'idle',
    ])
    expect(heard.at(-1)).toEqual(['idle', 'idle'])
  })

  test('says running from the moment on at which it took the input', async () => {
    const { createAgent } = await createHost(['one'])
    const agent = createAgent()
    const before = agent.status

    const end = agent.send('first')
    const after = agent.status
    await end
    await agent.whenIdle()

    expect([before, after, agent.status]).toEqual(['idle', 'running', 'idle'])
  })
})

describe('steer', () => {
  test('reaches the running turn before its next step', async () => {
    const { ctx, model, createAgent } = await createHost([
      { calls: [{ name: 'work', callId: 'a' }] },
      'understood',
    ])
    const { tool, started, release } = createHeldTool('work')
    ctx.tools.register(tool)
    const agent = createAgent()
    const first = agent.send('go')
    await waitFor('the tool runs', () => started.length === 1)

    const second = agent.steer('but carefully')
    release('a')

    expect(await Promise.all([first, second])).toEqual([
      { reason: 'completed' },
      { reason: 'completed' },
    ])
    expect(storyOf(agent).slice(5)).toEqual([
      'result a: a is done',
      'step 1 ends',
      'user: but carefully',
      'step 2',
      'model: understood (stop)',
      'step 2 ends',
      'turn ends: completed',
    ])
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: 'user' })
  })

  test('makes a turn go on that was about to complete', async () => {
    const held = gate()
    const { createAgent } = await createHost([{ text: 'done', until: held.opened }, 'and that too'])
    const agent = createAgent()
    const first = agent.send('go')
    await settle()

    const second = agent.steer('one thing more')
    held.open()
    await Promise.all([first, second])

    expect(usersAndTurns(storyOf(agent))).toEqual([
      'turn 1',
      'user: go',
      'user: one thing more',
      'turn ends: completed',
    ])
  })

  test('makes a turn go on that a tool was about to end', async () => {
    const { ctx, createAgent } = await createHost([{ calls: [{ name: 'finish' }] }, 'and that too'])
    ctx.tools.register(
      createTool('finish', async () => {
        void agent.steer('one thing more')
        return { content: [], isError: false, endsTurn: true }
      }),
    )
    const agent = createAgent()

    const end = await agent.send('go')

    expect(end).toEqual({ reason: 'completed' })
    expect(storyOf(agent)).toContain('model: and that too (stop)')
  })

  test.each<[string, { finish?: 'max-tokens' | 'refusal' | 'error' }, number, string]>([
    ['failed', { finish: 'error' }, 10, 'error'],
    ['was cut short', { finish: 'max-tokens' }, 10, 'max-tokens'],
    ['was refused', { finish: 'refusal' }, 10, 'refusal'],
    ['had no step left', {}, 1, 'max-steps'],
  ])(
    'opens the next turn when the running one %s, and is not lost',
    async (_, reply, maxSteps, reason) => {
      const held = gate()
      const { ctx, createAgent } = await createHost([
        { text: 'hm', until: held.opened, calls: [{ name: 'work' }], ...reply },
        'the answer',
      ])
      ctx.tools.register(createTool('work'))
      const agent = createAgent({ options: { model: 'scripted', maxSteps } })
      const first = agent.send('go')
      await settle()

      const second = agent.steer('one thing more')
      held.open()

      expect([(await first).reason, await second]).toEqual([reason, { reason: 'completed' }])
      expect(usersAndTurns(storyOf(agent))).toEqual([
        'turn 1',
        'user: go',
        `turn ends: ${reason}`,
        'turn 2',
        'user: one thing more',
        'turn ends: completed',
      ])
    },
  )

  test('opens the next turn when it comes after the end', async () => {
    const { ctx, createAgent } = await createHost(['one', 'two'])
    const agent = createAgent()
    const late: Promise<TurnEnd>[] = []
    ctx.on('session/event', ({ event }) => {
      if (event.type === 'turn/end' && late.length === 0) late.push(agent.steer('late'))
    })

    await agent.send('go')
    const end = await late[0]

    expect(end).toEqual({ reason: 'completed' })
    expect(usersAndTurns(storyOf(agent))).toEqual([
      'turn 1',
      'user: go',
      'turn ends: completed',
      'turn 2',
      'user: late',
      'turn ends: completed',
    ])
  })

  test('is the same as send while the agent is idle', async () => {
    const { createAgent } = await createHost(['one'])
    const agent = createAgent()

    const end = await agent.steer('go')

    expect(end).toEqual({ reason: 'completed' })
    expect(usersAndTurns(storyOf(agent))).toEqual(['turn 1', 'user: go', 'turn ends: completed'])
  })
})

describe('whenIdle', () => {
  test('settles at once while nothing runs', async () => {
    const { createAgent } = await createHost([])

    await expect(createAgent().whenIdle()).resolves.toBeUndefined()
  })

  test('waits for all turns that are queued', async () => {
    const held = gate()
    const { createAgent } = await createHost([{ text: 'one', until: held.opened }, 'two'])
    const agent = createAgent()
    void agent.send('first')
    await settle()
    void agent.send('second')

    const idle = agent.whenIdle()
    held.open()
    await idle

    expect(agent.session.turnCount).toBe(2)
    expect(agent.status).toBe('idle')
  })
})

function fail(): never {
  throw new Error('a broken listener')
}

async function failLater(): Promise<void> {
  throw new Error('a broken listener')
}

describe('listeners that fail', () => {
  test('change nothing of a turn, whatever they listen to', async () => {
    const { ctx } = await createHost(
      [{ deltas: ['a'], calls: [{ name: 'work', callId: 'a' }] }, 'done'],
      { expectErrors: /listener/ },
    )
    ctx.tools.register(
      createTool('work', async (_, { update }) => {
        update({ text: 'half' })
        return 'worked'
      }),
    )
    for (const name of [
      'session/event',
      'agent/status',
      'agent/delta',
      'agent/created',
      'agent/disposed',
      'session/created',
      'session/released',
      'tools/progress',
    ] as const) {
      ctx.on(name, fail)
      ctx.on(name, failLater)
    }
    const handle = ctx.agents.create({ cwd: '/' })

    const end = await handle.agent.send('go')
    await handle.dispose()

    expect(end).toEqual({ reason: 'completed' })
    expect(storyOf(handle.agent)).toHaveLength(11)
    expect(ctx.agents.list()).toEqual([])
  })
})

describe('a store that fails', () => {
  test('warns at the end of the turn, which keeps its end', async () => {
    const { ctx, createAgent } = await createHost(['answer', 'another'])
    const warnings = collectWarnings(ctx)
    const flush = vi
      .fn<() => Promise<void>>()
      .mockRejectedValueOnce(new Error('disk full'))
      .mockResolvedValue()
    ctx.sessions.registerStore(createStore({ flush }))
    const agent = createAgent({ id: 'one' as SessionId })

    const ends = [await agent.send('first'), await agent.send('second')]

    expect(ends).toEqual([{ reason: 'completed' }, { reason: 'completed' }])
    expect(warnings.join('\n')).toContain('the last turn of session "one" was not stored')
    expect(warnings.join('\n')).toContain('disk full')
  })
})

async function createHandle(
  script: Script,
  config: Parameters<typeof createHost>[1] = {},
): Promise<AgentHandle & { readonly host: Host }> {
  const host = await createHost(script, config)
  return { ...host.ctx.agents.create({ id: 'one' as SessionId, cwd: '/' }), host }
}

describe('dispose', () => {
  test('aborts the running turn and all that waits, then takes no more input', async () => {
    const { agent, dispose, host } = await createHandle([{ text: 'working', until: forever }])
    const ends = [agent.send('one')]
    await waitFor('the model is asked', () => host.model.requests.length === 1)
    ends.push(agent.send('two'))

    const disposal = dispose()
    const refusal = new AgentError('AGENT_DISPOSED', 'agent "one" is disposed: create another one')
    expect(() => agent.send('three')).toThrow(refusal)
    expect(() => agent.steer('three')).toThrow(refusal)
    await disposal

    const end = {
      reason: 'aborted',
      error: { code: 'ABORTED', message: 'the agent was disposed' },
    }
    expect(await Promise.all(ends)).toEqual([end, end])
    expect(host.model.requests).toHaveLength(1)
    expect(agent.status).toBe('disposed')
    expect(() => agent.send('four')).toThrow(refusal)
  })

  test('asks no model for a prompt that was sent just before it', async () => {
    const { agent, dispose, host } = await createHandle(['answer'])

    const end = agent.send('one')
    await dispose()

    expect(await end).toMatchObject({ reason: 'aborted' })
    expect(host.model.requests).toHaveLength(0)
  })

  test('announces the end once, after idle', async () => {
    const { agent, dispose, host } = await createHandle(['answer'])
    const heard: string[] = []
    host.ctx.on('agent/status', ({ status }) => void heard.push(status))
    host.ctx.on('agent/disposed', () => void heard.push('gone'))
    await agent.send('one')

    await Promise.all([dispose(), dispose()])
    await dispose()

    expect(heard).toEqual(['running', 'idle', 'disposed', 'gone'])
  })

  test('may be called by whoever hears of the cancel', async () => {
    const { agent, dispose, host } = await createHandle([{ calls: [{ name: 'work' }] }])
    const disposals: Promise<void>[] = []
    let isRunning = false
    host.ctx.tools.register(
      createTool('work', async (_, { signal }) => {
        isRunning = true
        await new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            disposals.push(dispose())
            expect(() => agent.send('more')).toThrow(AgentError)
            resolve()
          })
        })
        return 'stopped'
      }),
    )
    const gone = vi.fn<() => void>()
    host.ctx.on('agent/disposed', gone)
    void agent.send('go')
    await waitFor('the tool runs', () => isRunning)

    disposals.push(dispose())
    await Promise.all(disposals)

    expect(new Set(disposals).size).toBe(1)
    expect(gone).toHaveBeenCalledOnce()
  })

  test('may be called by a tool of the agent itself', async () => {
    const { agent, dispose, host } = await createHandle([{ calls: [{ name: 'leave' }] }], {
      config: impatient,
    })
    const warnings = collectWarnings(host.ctx)
    host.ctx.tools.register(
      createTool('leave', async () => {
        await dispose()
        return 'unheard'
      }),
    )

    const end = await agent.send('go')
    await dispose()

    expect(end).toMatchObject({ reason: 'aborted' })
    expect(host.ctx.agents.list()).toEqual([])
    expect(warnings).toEqual(['Error: 1 tool calls of agent "one" ignore their cancel'])
  })

  test('waits for calls that outlived their turn', async () => {
    const host = await createHost([{ calls: [{ name: 'deaf', callId: 'a' }] }], {
      config: { abortGraceMs: 0, stopGraceMs: 60_000 },
    })
    const { agent, dispose } = host.ctx.agents.create({ cwd: '/' })
    const { tool, started, release } = createHeldTool('deaf')
    host.ctx.tools.register(tool)
    const end = agent.send('go')
    await waitFor('the tool runs', () => started.length === 1)

    let isGone = false
    const disposal = dispose().then(() => (isGone = true))
    await end
    await settle()
    const before = isGone
    release('a')
    await disposal

    expect([before, isGone]).toEqual([false, true])
  })

  test('waits no longer than stopGraceMs for calls that never end, and warns of them', async () => {
    const host = await createHost([{ calls: [{ name: 'deaf', callId: 'a' }] }], {
      config: impatient,
    })
    const warnings = collectWarnings(host.ctx)
    const { agent, dispose } = host.ctx.agents.create({ cwd: '/' })
    const { tool, started } = createHeldTool('deaf')
    host.ctx.tools.register(tool)
    const end = agent.send('go')
    await waitFor('the tool runs', () => started.length === 1)

    await dispose()

    expect(await end).toMatchObject({ reason: 'aborted' })
    expect(host.ctx.agents.list()).toEqual([])
    expect(warnings).toEqual([`Error: 1 tool calls of agent "${agent.id}" ignore their cancel`])
  })
})

describe('a turn that cannot be opened', () => {
  test('ends its input with an error, and the agent goes on', async () => {
    const { createAgent } = await createHost(['fine'])
    const agent = createAgent()
    const { options } = agent

    Object.assign(agent, { options: { model: () => 'no text', maxSteps: 1 } })
    const end = await agent.send('first')
    Object.assign(agent, { options })
    const next = await agent.send('second')

    expect(end).toMatchObject({ reason: 'error', error: { code: 'NOT_JSON' } })
    expect(next).toEqual({ reason: 'completed' })
    await agent.whenIdle()
    expect(agent.status).toBe('idle')
  })
})

describe('onDispose', () => {
  test('calls what is tied to the agent after the cancel, and waits for it', async () => {
    const host = await createHost([{ text: 'working', until: forever }])
    const { agent, dispose } = host.ctx.agents.create({ cwd: '/' })
    const held = gate()
    const log: string[] = []
    agent.onDispose(async () => {
      log.push(host.model.requests[0]?.signal.aborted === true ? 'after the cancel' : 'before')
      await held.opened
      log.push('child is gone')
    })
    void agent.send('go')
    await settle()

    const disposal = dispose().then(() => log.push('agent is gone'))
    await settle()
    held.open()
    await disposal

    expect(log).toEqual(['after the cancel', 'child is gone', 'agent is gone'])
  })

  test('calls nothing that was untied again', async () => {
    const { ctx } = await createHost([])
    const { agent, dispose } = ctx.agents.create({ cwd: '/' })
    const callback = vi.fn<() => Promise<void>>(async () => {})

    agent.onDispose(callback)()
    await dispose()

    expect(callback).not.toHaveBeenCalled()
  })

  test('disposes the rest when one throws or rejects, and warns of each', async () => {
    const { ctx } = await createHost([])
    const warnings = collectWarnings(ctx)
    const { agent, dispose } = ctx.agents.create({ id: 'one' as SessionId, cwd: '/' })
    const callback = vi.fn<() => Promise<void>>(async () => {})
    agent.onDispose(() => Promise.reject(new Error('first')))
    agent.onDispose(() => {
      throw new Error('second')
    })
    agent.onDispose(callback)

    await dispose()

    expect(callback).toHaveBeenCalledOnce()
    expect(ctx.agents.list()).toEqual([])
    expect(ctx.sessions.list()).toEqual([])
    expect(warnings).toEqual([
      'Error: first',
      'Error: something tied to agent "one" was not disposed',
      'Error: second',
      'Error: something tied to agent "one" was not disposed',
    ])
  })

  test('takes along what a slow tool ties to the agent while it stops', async () => {
    const { ctx } = await createHost([{ calls: [{ name: 'spawn' }] }])
    const { agent, dispose } = ctx.agents.create({ cwd: '/' })
    const childDisposed = vi.fn<() => Promise<void>>(async () => {})
    let isRunning = false
    ctx.tools.register(
      createTool('spawn', async (_, { signal }) => {
        isRunning = true
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        await settle()
        agent.onDispose(childDisposed)
        return 'started'
      }),
    )
    void agent.send('go')
    await waitFor('the tool runs', () => isRunning)

    await dispose()

    expect(childDisposed).toHaveBeenCalledOnce()
  })

  test('refuses or disposes what is tied to the agent in any microtask of its end', async () => {
    const { ctx } = await createHost([])
    const outcomes: string[] = []
    while (outcomes.at(-1) !== 'refused') {
      const { agent, dispose } = ctx.agents.create({ cwd: '/' })
      let outcome = 'lost'
      const disposal = dispose()
      for (let tick = 0; tick < outcomes.length; tick += 1) await Promise.resolve()
      try {
        agent.onDispose(async () => void (outcome = 'disposed'))
      } catch {
        outcome = 'refused'
      }
      await disposal
      outcomes.push(outcome)
    }

    expect(outcomes.length).toBeGreaterThan(1)
    expect(outcomes).not.toContain('lost')
  })

  test('refuses to tie anything to an agent that is gone', async () => {
    const { ctx } = await createHost([])
    const { agent, dispose } = ctx.agents.create({ id: 'one' as SessionId, cwd: '/' })
    await dispose()

    expect(() => agent.onDispose(async () => {})).toThrow(
      new AgentError('AGENT_DISPOSED', 'agent "one" is disposed: create another one'),
    )
  })
})
