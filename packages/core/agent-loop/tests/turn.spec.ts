import { type Failure, LlmError } from '@deepseek-ai/dsh-llm'
import { scriptedModel } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { createAdapter, createHost, createTool, storyOf, streamOf } from './helpers.ts'

describe('runTurn', () => {
  test('asks the model until it calls no more tools, and logs every step of it', async () => {
    const { ctx, createAgent } = await createHost([
      { text: 'let me see', calls: [{ name: 'read', callId: 'a' }] },
      { calls: [{ name: 'read', callId: 'b' }] },
      'it is done',
    ])
    ctx.tools.register(createTool('read'))
    const agent = createAgent()

    const end = await agent.send('please do it')

    expect(end).toEqual({ reason: 'completed' })
    expect(storyOf(agent)).toEqual([
      'turn 1',
      'user: please do it',
      'step 1',
      'model: let me see read#a (tool-calls)',
      'call a',
      'result a: read is done',
      'step 1 ends',
      'step 2',
      'model: read#b (tool-calls)',
      'call b',
      'result b: read is done',
      'step 2 ends',
      'step 3',
      'model: it is done (stop)',
      'step 3 ends',
      'turn ends: completed',
    ])
  })

  test('tells the model the prompt, the tools, the options and the conversation so far', async () => {
    const { ctx, model, createAgent } = await createHost([
      { calls: [{ name: 'add', callId: 'a', input: { a: 1, b: 2 } }] },
      'it is 3',
    ])
    ctx.systemPrompt.register({ name: 'workspace', text: 'You are {{model}} in {{cwd}}.' })
    ctx.tools.register({
      name: 'add',
      description: 'adds',
      parameters: z.object({ a: z.number(), b: z.number() }),
      execute: async ({ a, b }) => `${a + b}`,
    })
    const agent = createAgent({
      options: { model: 'scripted', temperature: 0.1, maxOutputTokens: 99 },
    })

    await agent.send('what is 1 + 2?')

    const question = { role: 'user', content: [{ type: 'text', text: 'what is 1 + 2?' }] }
    expect(model.requests[0]).toEqual({
      model: 'scripted',
      system: 'You are scripted in /work.',
      messages: [question],
      tools: ctx.tools.schemas(agent),
      temperature: 0.1,
      maxOutputTokens: 99,
      signal: expect.any(AbortSignal) as AbortSignal,
      sessionId: agent.id,
    })
    expect(model.requests[1]?.messages).toMatchObject([
      question,
      { role: 'assistant', content: [{ type: 'tool-call', callId: 'a', input: { a: 1, b: 2 } }] },
      { role: 'tool', content: [{ type: 'tool-result', callId: 'a', content: [{ text: '3' }] }] },
    ])
  })

  test('sends no half of a surrogate pair, wherever it comes from', async () => {
    const half = 'cut \uD83D'
    const { ctx, model, createAgent } = await createHost([
      { text: half, calls: [{ name: 'look', input: { half } }] },
      'done',
    ])
    ctx.systemPrompt.register({ name: 'a', text: half })
    ctx.systemPrompt.register({ name: 'b', text: () => half })
    ctx.tools.register(createTool('look', async () => half, { description: half }))

    await createAgent().send(half)

    const { system, messages, tools } = model.requests[1] ?? {}
    const sent = JSON.stringify({ system, messages, tools })
    expect(sent.match(/cut \uFFFD/g)).toHaveLength(7)
    expect(sent).not.toMatch(/\\ud83d/i)
  })

  test('leaves out options that the agent does not have', async () => {
    const { model, createAgent } = await createHost(['hello'])

    await createAgent().send('hello')

    expect(model.requests[0]).not.toHaveProperty('temperature')
    expect(model.requests[0]).not.toHaveProperty('maxOutputTokens')
  })

  test('remembers earlier turns', async () => {
    const { model, createAgent } = await createHost(['one', 'two'])
    const agent = createAgent()

    await agent.send('first')
    await agent.send('second')

    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
    ])
    expect(storyOf(agent)).toContain('turn 2')
    expect(agent.session.usage).toEqual({ inputTokens: 20, outputTokens: 10 })
  })

  test('fails when the model announces tool calls and makes none', async () => {
    const { createAgent } = await createHost([{ text: 'I call', finish: 'tool-calls' }])

    const end = await createAgent().send('please do it')

    expect(end).toMatchObject({ reason: 'error', error: { code: 'MODEL_FAILED' } })
  })

  test('ends after maxSteps steps with a reason of its own', async () => {
    const { ctx, model, createAgent } = await createHost(() => ({ calls: [{ name: 'again' }] }))
    ctx.tools.register(createTool('again'))
    const agent = createAgent({ options: { model: 'scripted', maxSteps: 3 } })

    const end = await agent.send('never stop')

    expect(end).toEqual({
      reason: 'max-steps',
      error: {
        code: 'MAX_STEPS',
        message: 'stopped after 3 steps: the turn is longer than maxSteps allows',
      },
    })
    expect(model.requests).toHaveLength(3)
    expect(agent.session.lastTurnEnd).toEqual(end)
  })

  test('completes when the last step that it may take needs no other', async () => {
    const { ctx, createAgent } = await createHost([{ calls: [{ name: 'once' }] }, 'done'])
    ctx.tools.register(createTool('once'))
    const agent = createAgent({ options: { model: 'scripted', maxSteps: 2 } })

    expect(await agent.send('go')).toEqual({ reason: 'completed' })
  })

  test('keeps the system prompt from step to step, and asks for it anew in the next turn', async () => {
    const { ctx, model, createAgent } = await createHost([
      { calls: [{ name: 'work' }] },
      'one',
      'two',
    ])
    const text = vi.fn<() => string>().mockReturnValueOnce('at noon').mockReturnValue('at night')
    ctx.systemPrompt.register({ name: 'clock', text })
    ctx.tools.register(
      createTool('work', async () => {
        ctx.systemPrompt.register({ name: 'late', text: 'came late' })
        return 'done'
      }),
    )
    const agent = createAgent()

    await agent.send('first')
    await agent.send('second')

    expect(model.requests.map(({ system }) => system)).toEqual([
      'at noon',
      'at noon',
      'at night\n\ncame late',
    ])
  })

  test('offers a tool that is registered during the turn from the next step on', async () => {
    const { ctx, model, createAgent } = await createHost([
      { calls: [{ name: 'install' }] },
      { calls: [{ name: 'added', callId: 'b' }] },
      'done',
    ])
    ctx.tools.register(
      createTool('install', async () => {
        ctx.tools.register(createTool('added'))
        return 'installed'
      }),
    )
    const agent = createAgent()

    await agent.send('go')

    expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ['install'],
      ['added', 'install'],
      ['added', 'install'],
    ])
    expect(storyOf(agent)).toContain('result b: added is done')
  })

  test('uses a new model from the next turn on, whenever it was set', async () => {
    const { ctx, createAgent } = await createHost([{ calls: [{ name: 'work' }] }, 'one', 'two'])
    ctx.llm.registerAdapter(scriptedModel(['from the other'], 'other'))
    ctx.tools.register(
      createTool('work', async () => {
        agent.setModel('other')
        return 'done'
      }),
    )
    const agent = createAgent()

    await agent.send('first')
    await agent.send('second')

    const models = Array.from(agent.session.events()).flatMap((event) =>
      event.type === 'turn/start' || event.type === 'assistant/message' ? [event.data.model] : [],
    )
    expect(models).toEqual(['scripted', 'scripted', 'scripted', 'other', 'other'])
    expect(agent.model).toBe('other')
  })

  test('refuses to set a model that nobody serves', async () => {
    const { createAgent } = await createHost([])
    const agent = createAgent()

    expect(() => agent.setModel('gone')).toThrow('no model "gone" (registered: scripted)')

    expect(agent.model).toBe('scripted')
  })

  test('ends with the error of a prompt section that throws, before any model call', async () => {
    const { ctx, model, createAgent } = await createHost(['fine'])
    const dispose = ctx.systemPrompt.register({
      name: 'repository',
      text: () => {
        throw new Error('no git')
      },
    })
    const agent = createAgent()

    const end = await agent.send('first')
    await dispose()
    const next = await agent.send('second')

    expect(end).toEqual({
      reason: 'error',
      error: { code: 'SECTION_FAILED', message: 'prompt section "repository" failed: no git' },
    })
    expect(next).toEqual({ reason: 'completed' })
    expect(model.requests).toHaveLength(1)
    expect(storyOf(agent).slice(0, 3)).toEqual(['turn 1', 'user: first', 'turn ends: error'])
  })

  test('ends with an error when its model is gone, and works again when it is back', async () => {
    const { ctx, createAgent } = await createHost([])
    const other = scriptedModel(['back again'], 'other')
    const dispose = ctx.llm.registerAdapter(other)
    const agent = createAgent({ options: { model: 'other' } })
    await dispose()

    const gone = await agent.send('first')
    ctx.llm.registerAdapter(other)
    const back = await agent.send('second')

    expect(gone).toMatchObject({ reason: 'error', error: { code: 'UNKNOWN_MODEL' } })
    expect(back).toEqual({ reason: 'completed' })
  })

  test.each<[string, unknown, Failure]>([
    [
      'message is no text',
      Object.defineProperty(new Error('x'), 'message', { value: { f() {} } }),
      { code: 'MODEL_FAILED', message: '{ f: [Function: f] }' },
    ],
    [
      'code is no text',
      Object.assign(new LlmError('MODEL_AUTH', 'no key'), { code: () => 1 }),
      { code: 'MODEL_FAILED', message: 'no key' },
    ],
  ])('ends with an error whose %s, and the agent goes on', async (_, thrown, error) => {
    const { ctx, createAgent } = await createHost([])
    const stream = (): never => {
      throw thrown
    }
    ctx.llm.registerAdapter(createAdapter(stream))
    const agent = createAgent({ options: { model: 'custom' } })

    expect(await agent.send('go')).toEqual({ reason: 'error', error })
    expect(await agent.send('again')).toEqual({ reason: 'error', error })
  })

  test('ends with an error when no log can hold the failure that the model tells', async () => {
    const { ctx, createAgent } = await createHost([])
    const error = { code: 'MODEL_FAILED', message: () => 'no text' } as unknown as Failure
    ctx.llm.registerAdapter(
      createAdapter(() => streamOf([{ type: 'finish', reason: 'error', error }])),
    )
    const agent = createAgent({ options: { model: 'custom' } })

    expect(await agent.send('go')).toMatchObject({ reason: 'error', error: { code: 'NOT_JSON' } })
    expect(storyOf(agent).at(-1)).toBe('turn ends: error')
  })
})
