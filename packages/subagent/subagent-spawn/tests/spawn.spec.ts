import { violationsOf } from '@deepseek-ai/dsh-invariants'
import { gate, scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import * as spawn from '../src/index.ts'
import {
  createBench,
  delegating,
  isAnswered,
  promptOf,
  registerDelegate,
  registerTool,
  textOf,
  toolResultsOf,
} from './helpers.ts'

describe('the plugin', () => {
  test('registers a provider that starts children from nothing, with every capability', async () => {
    const { ctx } = await createBench()

    const provider = ctx.subagents.getProvider('spawn')

    expect(provider).toMatchObject({
      name: 'spawn',
      capabilities: { outputSchema: true, depthLimit: true, toolFilter: true },
      inheritsParentContext: false,
    })
    expect(spawn).not.toHaveProperty('default')
  })

  test('takes another name from its config, and may be loaded twice', async () => {
    const { ctx } = await createBench({
      yml: `
- name: '@deepseek-ai/dsh-subagent-spawn'
  config: { providerName: worker }
`,
    })

    expect(ctx.subagents.list().toSorted()).toEqual(['spawn', 'worker'])
  })

  test('leaves one provider and no further listener after twenty reloads', async () => {
    const { ctx, delegate } = await createBench()
    const entry = [...ctx.loader.entries()].find(
      ({ options }) => options.name === '@deepseek-ai/dsh-subagent-spawn',
    )
    const countListeners = (): number =>
      Object.values(ctx.root.events._hooks).reduce((sum, hooks) => sum + hooks.length, 0)
    const before = countListeners()

    for (let reload = 0; reload < 20; reload += 1) await entry?.fiber?.restart()

    expect(ctx.subagents.list()).toEqual(['spawn'])
    expect(countListeners()).toBe(before)
    expect(await delegate()).toMatchObject({ stopReason: 'completed' })
  })

  test('that is unloaded takes no more starts, and its live children finish', async () => {
    const held = gate()
    const { ctx, start, parent } = await createBench({
      model: () => ({ text: 'done', until: held.opened }),
      maxConcurrent: 1,
    })
    const entry = [...ctx.loader.entries()].find(
      ({ options }) => options.name === '@deepseek-ai/dsh-subagent-spawn',
    )
    const running = start()
    const waiting = start()

    await entry?.fiber?.dispose()
    held.open()
    const results = [await running.result, await waiting.result]

    expect(() => start()).toThrow(expect.objectContaining({ code: 'NO_PROVIDER' }))
    expect(results.map(({ stopReason }) => stopReason)).toEqual(['completed', 'completed'])
    await Promise.all([running, waiting].map((run) => run.dispose()))
    expect(ctx.agents.list()).toEqual([parent])
  })
})

describe('a spawned child', () => {
  test('does what it is told and hands in its last message', async () => {
    const { ctx, parent } = await createBench({ model: ['it is in line 7'] })

    const run = ctx.subagents.start('spawn', { prompt: 'find the bug', parent })
    const { output, stopReason } = await run.result
    await run.dispose()

    expect(stopReason).toBe('completed')
    expect(output).toEqual([{ type: 'text', text: 'it is in line 7' }])
  })

  test('sees its prompt and nothing of the parent', async () => {
    const { model, parent, delegate } = await createBench()
    await parent.send('my secret is 42')

    await delegate({ prompt: 'find the bug' })

    expect(model.requests.at(-1)?.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'find the bug' }] },
    ])
  })

  test('has a session of its own that names its parent, depth and origin', async () => {
    const { ctx } = await createBench()
    const { agent: parent } = ctx.agents.create({ cwd: '/tmp', delegationDepth: 1 })
    const request = { prompt: 'go', parent, callId: 'call-7', label: 'scout' }

    const run = ctx.subagents.start('spawn', request)
    const child = ctx.agents.get(run.id)

    expect(child?.session.header).toEqual({
      id: run.id,
      createdAt: expect.any(Number) as number,
      cwd: '/tmp',
      parentSession: parent.id,
      delegationDepth: 2,
      origin: { provider: 'spawn', callId: 'call-7', label: 'scout' },
    })
    expect(child?.options.subagentDepth).toBe(2)
    expect(run.id).not.toBe(parent.id)
    await run.result
    expect(violationsOf(child?.session.events() ?? [])).toEqual([])
    await run.dispose()
  })

  test('leaves out of its origin what was not said', async () => {
    const { ctx, start } = await createBench()

    const run = start()

    expect(ctx.agents.get(run.id)?.session.header.origin).toEqual({ provider: 'spawn' })
    await run.dispose()
  })

  test("is in the parent's log a call and its result, nothing else", async () => {
    const { ctx, parent } = await createBench({
      model: (request) => {
        if (promptOf(request) !== 'lead') return 'the answer'
        return isAnswered(request) ? 'thanks' : delegating('sub')
      },
    })
    registerDelegate(ctx)

    await parent.send('lead')

    expect(toolResultsOf(parent.session)).toEqual(['completed: the answer'])
    expect([...parent.session.events()].map(({ type }) => type)).toEqual([
      'turn/start',
      'user/message',
      'step/start',
      'assistant/message',
      'tool/call',
      'tool/result',
      'step/end',
      'step/start',
      'assistant/message',
      'step/end',
      'turn/end',
    ])
  })

  test('is gone after dispose', async () => {
    const { ctx, parent, start } = await createBench()
    const run = start()
    await run.result
    expect(ctx.agents.list()).toHaveLength(2)

    await run.dispose()

    expect(ctx.agents.list()).toEqual([parent])
    expect(ctx.sessions.list()).toEqual([parent.session])
  })

  test('that nobody disposes goes with its parent', async () => {
    const { ctx } = await createBench()
    const { agent: parent, dispose } = ctx.agents.create({ cwd: '/' })
    const run = ctx.subagents.start('spawn', { prompt: 'go', parent })
    await run.result

    await dispose()

    expect(ctx.agents.get(run.id)).toBeUndefined()
  })
})

describe('the options of a child', () => {
  test('are those of its parent', async () => {
    const { ctx } = await createBench()
    const options = { model: 'scripted', maxSteps: 7, temperature: 0.5, maxOutputTokens: 99 }
    const { agent: parent } = ctx.agents.create({ cwd: '/', options })

    const run = ctx.subagents.start('spawn', { prompt: 'go', parent })

    expect(ctx.agents.get(run.id)?.options).toEqual({ ...options, subagentDepth: 1 })
    await run.dispose()
  })

  test('have the model that the parent was given later', async () => {
    const { ctx, parent, delegate } = await createBench()
    const other = scriptedModel(() => 'from the other', 'other')
    ctx.llm.registerAdapter(other)
    parent.setModel('other')

    const result = await delegate()

    expect(textOf(result)).toBe('from the other')
    expect(other.requests).toHaveLength(1)
  })

  test('may be overridden one by one', async () => {
    const { ctx, parent, start } = await createBench()
    ctx.llm.registerAdapter(scriptedModel(() => 'from the other', 'other'))

    const run = start({ agentOptions: { model: 'other', temperature: 1 } })

    expect(ctx.agents.get(run.id)?.options).toEqual({
      ...parent.options,
      model: 'other',
      temperature: 1,
      subagentDepth: 1,
    })
    await run.dispose()
  })

  test('stay those of the parent where the request says undefined', async () => {
    const { ctx, parent, start } = await createBench()
    ctx.llm.registerAdapter(scriptedModel(() => 'from the other', 'other'))

    const run = start({ agentOptions: { model: undefined, maxSteps: undefined } })

    expect(ctx.agents.get(run.id)?.options).toEqual({ ...parent.options, subagentDepth: 1 })
    await run.dispose()
  })

  test('never make the depth less than it is', async () => {
    const { ctx, start } = await createBench()

    const run = start({ agentOptions: { subagentDepth: 0 } })

    expect(ctx.agents.get(run.id)?.options.subagentDepth).toBe(1)
    await run.dispose()
  })

  test('with a model that nobody serves refuse the start and leave nothing', async () => {
    const { ctx, parent, start } = await createBench()

    const begin = () => start({ agentOptions: { model: 'gpt-0' } })

    expect(begin).toThrow(expect.objectContaining({ code: 'UNKNOWN_MODEL' }))
    expect(ctx.agents.list()).toEqual([parent])
    expect(ctx.sessions.list()).toEqual([parent.session])
    expect(ctx.subagents.runs()).toEqual([])
  })
})

describe('a parent with several children', () => {
  test('gets their results in call order, though one died and all ran at once', async () => {
    let atOnce = 0
    const allThere = gate()
    const { ctx, parent } = await createBench({
      model: async (request) => {
        const prompt = promptOf(request)
        if (prompt === 'lead') {
          return isAnswered(request) ? 'thanks' : delegating('1', '2', '3', '4', '5')
        }
        if (++atOnce === 5) allThere.open()
        await allThere.opened
        const error = { code: 'MODEL_FAILED', message: 'out of memory' }
        return prompt === '3' ? { finish: 'error', error } : `answer ${prompt}`
      },
    })
    registerDelegate(ctx)

    const end = await parent.send('lead')

    expect(end).toEqual({ reason: 'completed' })
    expect(toolResultsOf(parent.session)).toEqual([
      'completed: answer 1',
      'completed: answer 2',
      'error: ',
      'completed: answer 4',
      'completed: answer 5',
    ])
    expect(violationsOf(parent.session.events())).toEqual([])
    expect(ctx.agents.list()).toEqual([parent])
  })

  test('shares nothing with them that one could change for another', async () => {
    const { ctx, parent, start } = await createBench()
    ctx.llm.registerAdapter(scriptedModel(() => 'from the other', 'other'))
    for (const name of ['bash', 'read']) registerTool(ctx, name)
    const allow = ['read']
    const request = { agentOptions: { temperature: 1 }, toolFilter: { allow } }
    const runs = [start(request), start(request)]
    const [one, two] = runs.map(({ id }) => ctx.agents.get(id))

    one?.setModel('other')
    request.agentOptions.temperature = 0
    allow.push('bash')

    expect([one?.model, two?.model, parent.model]).toEqual(['other', 'scripted', 'scripted'])
    for (const child of [one, two]) {
      expect(child?.options.temperature).toBe(1)
      expect(child?.session.header.origin?.toolFilters).toEqual([{ allow: ['read'] }])
      expect(child && ctx.tools.visible(child).map(({ name }) => name)).toEqual(['read'])
    }
    await Promise.all(runs.map((run) => run.dispose()))
  })

  test('that always delegates stops at the depth cap and hears what to do instead', async () => {
    const depths: number[] = []
    const { ctx, parent } = await createBench({
      model: (request) => (isAnswered(request) ? 'did it myself' : delegating('more')),
    })
    registerDelegate(ctx, () => ({ maxDepth: 3 }))
    const refusals: string[] = []
    ctx.on('session/event', ({ event }) => {
      if (event.type !== 'tool/result' || !event.data.isError) return
      const [block] = event.data.content
      refusals.push(`${event.data.code}: ${block?.type === 'text' ? block.text : ''}`)
    })
    ctx.on('subagent/start', ({ id }) => {
      depths.push(ctx.agents.get(id)?.session.header.delegationDepth ?? -1)
    })

    await parent.send('go')

    expect(depths).toEqual([1, 2, 3])
    expect(refusals).toEqual([
      expect.stringMatching(/^DEPTH_EXCEEDED: .*do the work without delegating$/),
    ])
    expect(toolResultsOf(parent.session)).toEqual(['completed: did it myself'])
  })

  test('that is cancelled ends them all, and no model is asked again', async () => {
    const { ctx, parent, model } = await createBench({
      model: (request) => {
        const left = Number(promptOf(request))
        return left === 0
          ? { text: 'thinking', until: new Promise(() => {}) }
          : delegating(`${left - 1}`, `${left - 1}`)
      },
    })
    registerDelegate(ctx)
    const turn = parent.send('3')
    await waitFor('eight leaves think', () => model.requests.length === 15)

    parent.cancel('enough')
    const end = await turn
    await waitFor('the children are gone', () => ctx.agents.list().length === 1)

    expect(end).toMatchObject({ reason: 'aborted' })
    expect(model.requests).toHaveLength(15)
    expect(ctx.subagents.runs()).toEqual([])
    expect(violationsOf(parent.session.events())).toEqual([])
  })

  test('that is cancelled starts with a fresh signal in its next turn', async () => {
    const { ctx, parent } = await createBench({
      model: (request) => {
        const prompt = promptOf(request)
        if (prompt === 'hang') return { until: new Promise(() => {}) }
        if (isAnswered(request)) return 'thanks'
        return prompt.startsWith('ask ') ? delegating(prompt.slice(4)) : 'the answer'
      },
    })
    registerDelegate(ctx)
    const turn = parent.send('ask hang')
    await waitFor('the child runs', () => ctx.subagents.runs().length === 1)
    parent.cancel()
    await turn

    await parent.send('ask again')

    expect(toolResultsOf(parent.session).at(-1)).toBe('completed: the answer')
  })
})
