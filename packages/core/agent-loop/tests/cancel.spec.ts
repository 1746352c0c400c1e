import { getEventListeners } from 'node:events'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { SessionEventType, TurnEnd } from '@deepseek-ai/dsh-session'
import { gate, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import {
  createAdapter,
  createHeldTool,
  createHost,
  createTool,
  type Host,
  impatient,
  resultsOf,
  settle,
  storyOf,
} from './helpers.ts'

const aborted: TurnEnd = { reason: 'aborted', error: { code: 'ABORTED', message: 'enough' } }
const forever = new Promise<never>(() => {})

const callOf = (call: string): { name: string; callId: string } => {
  const [name = '', callId = ''] = call.split('#')
  return { name, callId }
}

/** The next prompt is answered, by exactly one more model call than there were before. */
async function expectThatNextPromptRuns({ model }: Host, agent: Agent): Promise<void> {
  await agent.whenIdle()
  await settle()
  const before = model.requests.length
  expect(await agent.send('and now?')).toEqual({ reason: 'completed' })
  expect(model.requests).toHaveLength(before + 1)
  await agent.whenIdle()
  expect(agent.status).toBe('idle')
}

describe('cancel before the turn begins', () => {
  test('aborts a prompt that is queued, without a model call', async () => {
    const host = await createHost(['answer'])
    const agent = host.createAgent()

    const end = agent.send('one')
    agent.cancel('enough')

    expect(await end).toEqual(aborted)
    expect(host.model.requests).toHaveLength(0)
    expect(storyOf(agent)).toEqual(['turn 1', 'user: one', 'turn ends: aborted'])
    await expectThatNextPromptRuns(host, agent)
  })

  test('runs a prompt that is sent after the cancel, in the same tick', async () => {
    const host = await createHost(['answer'])
    const agent = host.createAgent()

    const first = agent.send('one')
    agent.cancel('enough')
    const second = agent.send('two')

    expect(await Promise.all([first, second])).toEqual([aborted, { reason: 'completed' }])
    expect(storyOf(agent)).toEqual([
      'turn 1',
      'user: one',
      'turn ends: aborted',
      'turn 2',
      'user: two',
      'step 1',
      'model: answer (stop)',
      'step 1 ends',
      'turn ends: completed',
    ])
  })

  test('aborts what waits behind the running turn, but not what is sent afterwards', async () => {
    const host = await createHost([{ text: 'working', until: forever }, 'answer', 'another'])
    const agent = host.createAgent()
    const first = agent.send('one')
    await waitFor('the model is asked', () => host.model.requests.length === 1)

    const ends = [first, agent.send('two'), agent.steer('also'), agent.send('three')]
    agent.cancel('enough')
    const late = [agent.steer('four'), agent.send('five')]

    expect(await Promise.all(ends)).toEqual([aborted, aborted, aborted, aborted])
    expect(await Promise.all(late)).toEqual([{ reason: 'completed' }, { reason: 'completed' }])
    expect(host.model.requests).toHaveLength(3)
    expect(storyOf(agent).filter((line) => /^(turn|user)/.test(line))).toEqual([
      'turn 1',
      'user: one',
      'turn ends: aborted',
      'turn 2',
      'user: also',
      'turn ends: aborted',
      'turn 3',
      'user: four',
      'turn ends: completed',
      'turn 4',
      'user: two',
      'user: three',
      'turn ends: aborted',
      'turn 5',
      'user: five',
      'turn ends: completed',
    ])
  })
})

describe('cancel between the status and the first step', () => {
  test('aborts from a listener that hears of running', async () => {
    const host = await createHost(['answer'])
    const agent = host.createAgent()
    const dispose = host.ctx.on('agent/status', ({ status }) => {
      if (status === 'running') agent.cancel('enough')
    })

    const end = await agent.send('one')
    dispose()

    expect(end).toEqual(aborted)
    expect(host.model.requests).toHaveLength(0)
    expect(storyOf(agent)).toEqual(['turn 1', 'user: one', 'turn ends: aborted'])
    await expectThatNextPromptRuns(host, agent)
  })

  test.each<[SessionEventType, string[]]>([
    ['turn/start', ['turn 1', 'user: one', 'turn ends: aborted']],
    ['user/message', ['turn 1', 'user: one', 'turn ends: aborted']],
    [
      'step/start',
      ['turn 1', 'user: one', 'step 1', 'model: (aborted)', 'step 1 ends', 'turn ends: aborted'],
    ],
  ])('aborts from a listener that hears of %s, without a model call', async (type, story) => {
    const host = await createHost(['answer'])
    const agent = host.createAgent()
    const dispose = host.ctx.on('session/event', ({ event }) => {
      if (event.type === type) agent.cancel('enough')
    })

    const end = await agent.send('one')
    dispose()

    expect(end).toEqual(aborted)
    expect(host.model.requests).toHaveLength(0)
    expect(storyOf(agent)).toEqual(story)
    await expectThatNextPromptRuns(host, agent)
  })
})

describe('cancel in the middle of a step', () => {
  test('ends a stream, and keeps what had arrived', async () => {
    const host = await createHost([{ text: 'half a sen', until: forever }, 'answer'])
    const agent = host.createAgent()
    const end = agent.send('one')
    await waitFor('the model is asked', () => host.model.requests.length === 1)
    await settle()

    agent.cancel('enough')

    expect(await end).toEqual(aborted)
    expect(host.model.requests[0]?.signal.aborted).toBe(true)
    expect(storyOf(agent)).toEqual([
      'turn 1',
      'user: one',
      'step 1',
      'model: half a sen (aborted)',
      'step 1 ends',
      'turn ends: aborted',
    ])
    await expectThatNextPromptRuns(host, agent)
  })

  test('does not wait for an adapter that is deaf, and ignores what it still says', async () => {
    const host = await createHost(['answer'])
    const late = gate()
    host.ctx.llm.registerAdapter(
      createAdapter(async function* () {
        yield { type: 'text-delta', text: 'one' }
        await late.opened
        yield { type: 'text-delta', text: 'too late' }
        yield { type: 'tool-call', callId: 'a', name: 'work', input: {} }
        yield { type: 'finish', reason: 'stop' }
      }, 'deaf'),
    )
    const deltas: string[] = []
    host.ctx.on('agent/delta', ({ text }) => void deltas.push(text))
    const agent = host.createAgent({ options: { model: 'deaf' } })
    const end = agent.send('one')
    await waitFor('it streams', () => deltas.length === 1)

    agent.cancel('enough')
    const result = await end
    const story = storyOf(agent)
    late.open()
    await settle()

    expect(result).toEqual(aborted)
    expect(deltas).toEqual(['one'])
    expect(story).toContain('model: one (aborted)')
    expect(storyOf(agent)).toEqual(story)
    agent.setModel('scripted')
    await expectThatNextPromptRuns(host, agent)
  })

  test('answers the calls that a cut message already holds, and runs none', async () => {
    const host = await createHost(['answer'])
    host.ctx.llm.registerAdapter(
      createAdapter(async function* () {
        yield { type: 'tool-call', callId: 'a', name: 'work', input: {} }
        yield { type: 'tool-call', callId: 'b', name: 'work', input: {} }
        await forever
      }, 'slow'),
    )
    let runs = 0
    host.ctx.tools.register(createTool('work', async () => `${(runs += 1)}`))
    const agent = host.createAgent({ options: { model: 'slow' } })
    const end = agent.send('one')
    await settle()

    agent.cancel('enough')

    expect(await end).toEqual(aborted)
    expect(resultsOf(agent)).toEqual(['a: ABORTED', 'b: ABORTED'])
    expect(runs).toBe(0)
    agent.setModel('scripted')
    await expectThatNextPromptRuns(host, agent)
  })

  test('lets a tool that heeds the signal clean up and say what it did', async () => {
    const host = await createHost([{ calls: [{ name: 'work', callId: 'a' }] }, 'answer'])
    let isRunning = false
    host.ctx.tools.register(
      createTool('work', async (_, { signal }) => {
        isRunning = true
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        await settle()
        isRunning = false
        return 'half of it is written'
      }),
    )
    const agent = host.createAgent()
    const end = agent.send('one')
    await waitFor('the tool runs', () => isRunning)

    agent.cancel('enough')

    expect(await end).toEqual(aborted)
    expect(isRunning).toBe(false)
    expect(resultsOf(agent)).toEqual(['a: half of it is written'])
    expect(host.model.requests).toHaveLength(1)
    await expectThatNextPromptRuns(host, agent)
  })

  test('leaves a deaf tool behind after the grace time, and forgets its late result', async () => {
    const host = await createHost([{ calls: ['deaf#a', 'deaf#b'].map(callOf) }, 'answer'], {
      config: impatient,
    })
    const { tool, started, release } = createHeldTool('deaf')
    host.ctx.tools.register(tool)
    const agent = host.createAgent()
    const end = agent.send('one')
    await waitFor('the tool runs', () => started.length === 1)

    agent.cancel('enough')
    const result = await end
    const story = storyOf(agent)
    release('a')
    await settle()

    expect(result).toEqual(aborted)
    expect(resultsOf(agent)).toEqual(['a: ABORTED', 'b: ABORTED'])
    expect(started).toEqual(['a'])
    expect(storyOf(agent)).toEqual(story)
    await expectThatNextPromptRuns(host, agent)
  })

  test('keeps the results of the parallel calls that were done', async () => {
    const host = await createHost(
      [{ calls: ['deaf#a', 'quick#b', 'deaf#c', 'later#d'].map(callOf) }, 'answer'],
      { config: impatient },
    )
    const { tool, started } = createHeldTool('deaf', { parallel: true })
    host.ctx.tools.register(tool)
    host.ctx.tools.register(createTool('quick', undefined, { parallel: true }))
    host.ctx.tools.register(createTool('later'))
    const agent = host.createAgent()
    const end = agent.send('one')
    await waitFor('the tools run', () => started.length === 2)
    await settle()

    agent.cancel('enough')

    expect(await end).toEqual(aborted)
    expect(resultsOf(agent)).toEqual(['a: ABORTED', 'b: quick is done', 'c: ABORTED', 'd: ABORTED'])
    await expectThatNextPromptRuns(host, agent)
  })

  test('does not run a call that waits for the store when the cancel comes', async () => {
    const host = await createHost([{ calls: [{ name: 'work', callId: 'a' }] }, 'answer'])
    let runs = 0
    host.ctx.tools.register(createTool('work', async () => `${(runs += 1)}`))
    const agent = host.createAgent()
    const { table } = host.ctx.sessions
    table.setStore({
      open: () => {},
      append: () => {},
      flush: async () => {
        agent.cancel('enough')
        await settle()
      },
      close: async () => {},
      load: () => Promise.reject(new Error('none')),
    })

    const end = await agent.send('one')

    expect(end).toEqual(aborted)
    expect(resultsOf(agent)).toEqual(['a: ABORTED'])
    expect(runs).toBe(0)
  })
})

describe('cancel between two steps', () => {
  test.each<SessionEventType>(['tool/call', 'tool/result', 'step/end'])(
    'asks the model no more when it comes with %s',
    async (type) => {
      const host = await createHost([{ calls: [{ name: 'work', callId: 'a' }] }, 'answer'])
      host.ctx.tools.register(createTool('work'))
      const agent = host.createAgent()
      const dispose = host.ctx.on('session/event', ({ event }) => {
        if (event.type === type) agent.cancel('enough')
      })

      const end = await agent.send('one')
      dispose()

      expect(end).toEqual(aborted)
      expect(host.model.requests).toHaveLength(1)
      expect(resultsOf(agent)).toEqual([type === 'tool/call' ? 'a: ABORTED' : 'a: work is done'])
      await expectThatNextPromptRuns(host, agent)
    },
  )

  test('calls a turn aborted that would have been completed by its last step', async () => {
    const host = await createHost(['answer', 'another'])
    const agent = host.createAgent()
    const dispose = host.ctx.on('session/event', ({ event }) => {
      if (event.type === 'assistant/message') agent.cancel('enough')
    })

    const end = await agent.send('one')
    dispose()

    expect(end).toEqual(aborted)
    await expectThatNextPromptRuns(host, agent)
  })
})

describe('cancel', () => {
  test('may be repeated, keeps its first reason, and says nothing without one', async () => {
    const host = await createHost([
      { text: 'a', until: forever },
      { text: 'b', until: forever },
    ])
    const agent = host.createAgent()
    const first = agent.send('one')
    await waitFor('the model is asked', () => host.model.requests.length === 1)

    agent.cancel('enough')
    agent.cancel('again')
    const ends = [await first]
    const second = agent.send('two')
    await waitFor('the model is asked again', () => host.model.requests.length === 2)
    agent.cancel()
    ends.push(await second)

    expect(ends).toEqual([aborted, { reason: 'aborted' }])
  })

  test('does nothing while the agent is idle, before the first turn and after the last', async () => {
    const host = await createHost(['answer', 'another'])
    const agent = host.createAgent()

    agent.cancel('before')
    const first = await agent.send('one')
    await agent.whenIdle()
    agent.cancel('after')
    const length = agent.session.length
    const second = await agent.send('two')

    expect([first, second]).toEqual([{ reason: 'completed' }, { reason: 'completed' }])
    expect(length).toBe(6)
  })

  test('does not undo an end that is already logged', async () => {
    const host = await createHost(['answer'])
    const agent = host.createAgent()
    host.ctx.on('session/event', ({ event }) => {
      if (event.type === 'turn/end') agent.cancel('too late')
    })

    expect(await agent.send('one')).toEqual({ reason: 'completed' })
    expect(agent.session.lastTurnEnd).toEqual({ reason: 'completed' })
  })

  test('leaves no listener on the signal, however many calls there were', async () => {
    const host = await createHost((_, index) =>
      index < 30 ? { calls: [{ name: 'work' }, { name: 'work' }] } : 'done',
    )
    const counts: number[] = []
    host.ctx.tools.register(
      createTool('work', async (_, { signal }) => {
        counts.push(getEventListeners(signal, 'abort').length)
        return 'ok'
      }),
    )

    await host.createAgent().send('go')

    expect(counts).toHaveLength(60)
    expect(new Set(counts).size).toBe(1)
  })
})
