import type { Agent } from '@deepseek-ai/dsh-agent'
import { violationsOf } from '@deepseek-ai/dsh-invariants'
import { gate, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test, vi } from 'vitest'
import * as plugin from '../src/index.ts'
import { childOf, createBench, lineOf, promptOf, registerDelegate } from './helpers.ts'

describe('the plugin', () => {
  test('registers a provider whose children inherit, with every capability', async () => {
    const { ctx } = await createBench()

    expect(ctx.subagents.getProvider('fork')).toMatchObject({
      name: 'fork',
      capabilities: { outputSchema: true, depthLimit: true, toolFilter: true },
      inheritsParentContext: true,
    })
    expect(ctx.subagents.getProvider('spawn')).toMatchObject({ inheritsParentContext: false })
    expect(plugin).not.toHaveProperty('default')
  })

  test('takes another name from its config', async () => {
    const { ctx } = await createBench(undefined, { providerName: 'twin' })

    expect(ctx.subagents.list().toSorted()).toEqual(['spawn', 'twin'])
  })

  test('leaves one provider and no further listener after twenty reloads', async () => {
    const { ctx } = await createBench()
    const entry = [...ctx.loader.entries()].find(
      ({ options }) => options.name === '@deepseek-ai/dsh-subagent-fork',
    )
    const countListeners = (): number => Object.values(ctx.root.events._hooks).flat().length
    const before = countListeners()

    for (let reload = 0; reload < 20; reload += 1) await entry?.fiber?.restart()

    expect(ctx.subagents.list().toSorted()).toEqual(['fork', 'spawn'])
    expect(countListeners()).toBe(before)
  })
})

describe('a forked child', () => {
  test('knows what its parent was told', async () => {
    const { ctx, parent } = await createBench(({ messages }) =>
      messages.map(lineOf).join().includes('swan') ? 'swan' : 'what codeword?',
    )

    await parent.send('the codeword is swan')
    const run = ctx.subagents.start('fork', { prompt: 'what is the codeword?', parent })
    const { output } = await run.result
    await run.dispose()

    expect(output).toEqual([{ type: 'text', text: 'swan' }])
  })

  test("has seen its parent's finished turns; its own prompt comes last", async () => {
    const { model, parent, fork } = await createBench()
    await parent.send('the codeword is swan')
    await parent.send('remember it')

    const run = fork({ prompt: 'what is the codeword?' })
    const result = await run.result

    expect(model.requests.at(-1)?.messages.map(lineOf)).toEqual([
      'user: the codeword is swan',
      'assistant: re: the codeword is swan',
      'user: remember it',
      'assistant: re: remember it',
      'user: what is the codeword?',
    ])
    expect(result.output).toEqual([{ type: 'text', text: 're: what is the codeword?' }])
    await run.dispose()
  })

  test('shares the events with its parent and copies none', async () => {
    const { ctx, parent, fork } = await createBench()
    await parent.send('one')
    await parent.send('two')
    const inherited = [...parent.session.events()]

    const run = fork()
    const { session } = childOf(ctx, run)
    await run.result

    expect(session.header.seedLength).toBe(inherited.length)
    for (const [seq, event] of inherited.entries()) expect(session.at(seq)).toBe(event)
    expect(session.at(inherited.length)?.type).toBe('turn/start')
    expect(parent.session.length).toBe(inherited.length)
    await run.dispose()
  })

  test('names its parent, depth, origin and the length of what it inherited', async () => {
    const { ctx, parent, fork } = await createBench()
    await parent.send('one')

    const run = fork({ callId: 'call-1', label: 'twin' })

    expect(childOf(ctx, run).session.header).toMatchObject({
      id: run.id,
      cwd: '/',
      parentSession: parent.id,
      seedLength: parent.session.length,
      delegationDepth: 1,
      origin: { provider: 'fork', callId: 'call-1', label: 'twin' },
    })
    await run.dispose()
  })

  test('of a parent without a finished turn starts from nothing', async () => {
    const { ctx, model, fork } = await createBench()

    const run = fork({ prompt: 'hello' })
    const { header } = childOf(ctx, run).session
    await run.result

    expect(header).not.toHaveProperty('seedLength')
    expect(model.requests.at(-1)?.messages.map(lineOf)).toEqual(['user: hello'])
    await run.dispose()
  })

  test('never sees the open turn, nor the call that made it, nor that of its twin', async () => {
    const { ctx, model, parent } = await createBench((request) => {
      const prompt = promptOf(request)
      if (prompt !== 'delegate both') return `re: ${prompt}`
      if (request.messages.at(-1)?.role === 'tool') return 'thanks'
      const calls = ['a', 'b'].map((task) => ({
        name: 'delegate',
        callId: task,
        input: { prompt: `task ${task}` },
      }))
      return { text: 'I delegate', calls }
    })
    registerDelegate(ctx)
    await parent.send('the codeword is swan')

    await parent.send('delegate both')

    const seenByChildren = model.requests
      .filter(({ sessionId }) => sessionId !== parent.id)
      .map(({ messages }) => messages.map(lineOf))
    const inherited = ['user: the codeword is swan', 'assistant: re: the codeword is swan']
    expect(seenByChildren).toEqual([
      [...inherited, 'user: task a'],
      [...inherited, 'user: task b'],
    ])
    const results = [...parent.session.events()].flatMap((event) =>
      event.type === 'tool/result' ? event.data.content : [],
    )
    expect(results).toEqual([
      { type: 'text', text: 're: task a' },
      { type: 'text', text: 're: task b' },
    ])
    expect(violationsOf(parent.session.events())).toEqual([])
  })

  test('in the first turn of its parent starts from nothing, though the turn is open', async () => {
    const { ctx, model, parent } = await createBench((request) => {
      if (request.messages.at(-1)?.role === 'tool') return 'thanks'
      return promptOf(request) === 'delegate'
        ? { calls: [{ name: 'delegate', input: { prompt: 'task' } }] }
        : 'done'
    })
    registerDelegate(ctx)

    await parent.send('delegate')

    const request = model.requests.find(({ sessionId }) => sessionId !== parent.id)
    expect(request?.messages.map(lineOf)).toEqual(['user: task'])
  })

  test('does not see what its parent does afterwards', async () => {
    const held = gate()
    const { ctx, model, parent, fork } = await createBench((request) =>
      promptOf(request) === 'slow' ? { text: 'slow', until: held.opened } : 'fast',
    )
    await parent.send('before')
    const run = fork({ prompt: 'slow' })
    const child = childOf(ctx, run)
    await waitFor('the child works', () =>
      model.requests.some(({ sessionId }) => sessionId === run.id),
    )

    await parent.send('after')
    held.open()
    await run.result
    await child.send('and now?')

    expect(model.requests.at(-1)?.messages.map(lineOf)).toEqual([
      'user: before',
      'assistant: fast',
      'user: slow',
      'assistant: slow',
      'user: and now?',
    ])
    await run.dispose()
  })

  test('of a fork inherits both logs, in order and by reference', async () => {
    const { ctx, model, parent, fork } = await createBench()
    await parent.send('grandparent')
    const first = fork({ prompt: 'parent' })
    const middle = childOf(ctx, first)
    await first.result

    const second = ctx.subagents.start('fork', { prompt: 'child', parent: middle })
    const { session } = childOf(ctx, second)
    await second.result

    expect(model.requests.at(-1)?.messages.map(lineOf)).toEqual([
      'user: grandparent',
      'assistant: re: grandparent',
      'user: parent',
      'assistant: re: parent',
      'user: child',
    ])
    expect(session.header).toMatchObject({
      parentSession: middle.id,
      delegationDepth: 2,
      seedLength: middle.session.length,
    })
    expect(session.at(0)).toBe(parent.session.at(0))
    expect(session.at(middle.session.length - 1)).toBe(middle.session.at(middle.session.length - 1))
    expect(violationsOf(session.events())).toEqual([])
    await second.dispose()
    await first.dispose()
  })

  test('of a fork that is in its first turn inherits what that one inherited', async () => {
    const held = gate()
    const { ctx, model, parent, fork } = await createBench((request) =>
      promptOf(request) === 'slow' ? { text: 'slow', until: held.opened } : 'fast',
    )
    await parent.send('grandparent')
    const first = fork({ prompt: 'slow' })
    await waitFor('the fork works', () => model.requests.length === 2)

    const second = ctx.subagents.start('fork', { prompt: 'child', parent: childOf(ctx, first) })
    await second.result

    expect(model.requests.at(-1)?.messages.map(lineOf)).toEqual([
      'user: grandparent',
      'assistant: fast',
      'user: child',
    ])
    held.open()
    await second.dispose()
    await first.dispose()
  })

  test.each<[string, Parameters<typeof createBench>[0]]>([
    ['says nothing', () => ({ text: '' })],
    ['only thinks', () => ({ reasoning: 'hm', text: '' })],
    ['fails', () => ({ text: '', finish: 'error', error: { code: 'X', message: 'broken' } })],
  ])("that %s never returns its parent's text", async (_title, answer) => {
    const { parent, fork, ctx } = await createBench((request, index) =>
      promptOf(request) === 'parent' ? 'text of the parent' : (answer?.(request, index) ?? ''),
    )
    await parent.send('parent')

    const run = fork()
    const { session } = childOf(ctx, run)
    const result = await run.result

    expect(result.output).toEqual([])
    expect(violationsOf(session.events())).toEqual([])
    await run.dispose()
  })

  test("that is cancelled before its first step never returns its parent's text", async () => {
    const { ctx, model, parent, fork } = await createBench()
    await parent.send('one')

    const run = fork()
    const { session } = childOf(ctx, run)
    run.cancel()
    const result = await run.result
    await run.dispose()

    expect(result).toMatchObject({ output: [], stopReason: 'aborted' })
    expect(model.requests).toHaveLength(1)
    expect(violationsOf(session.events())).toEqual([])
  })

  test('counts the tokens of its own steps, not those of its seed', async () => {
    const { parent, fork } = await createBench()
    for (const text of ['one', 'two', 'three']) await parent.send(text)

    const run = fork()

    expect((await run.result).usage).toEqual({ inputTokens: 10, outputTokens: 5 })
    await run.dispose()
  })

  test('keeps what it inherited after its parent is gone', async () => {
    const { ctx, model } = await createBench()
    const { agent: first, dispose } = ctx.agents.create({ cwd: '/' })
    await first.send('the codeword is swan')
    const run = ctx.subagents.start('fork', { prompt: 'go', parent: first })
    const { session } = childOf(ctx, run)
    await run.result

    await dispose()

    expect(session.deriveMessages().map(lineOf)).toEqual([
      'user: the codeword is swan',
      'assistant: re: the codeword is swan',
      'user: go',
      'assistant: re: go',
    ])
    expect(model.requests).toHaveLength(2)
  })
})

describe('a fork of 10,000 turns', () => {
  test('reads and copies no event at its start', async () => {
    const { ctx, parent, fork, model } = await createBench()
    appendTurns(parent, 10_000)
    const { session } = parent
    const reads = vi.spyOn(session, 'at')
    const lists = vi.spyOn(session, 'events')

    const run = fork({ prompt: 'go' })
    const child = childOf(ctx, run)
    const readsAtStart = reads.mock.calls.length + lists.mock.calls.length
    vi.restoreAllMocks()

    expect(readsAtStart).toBe(0)
    expect(child.session.length).toBe(60_000)
    expect(child.session.header.seedLength).toBe(60_000)
    for (const seq of [0, 1, 30_000, 59_999]) expect(child.session.at(seq)).toBe(session.at(seq))
    await run.result
    expect(model.requests[0]?.messages).toHaveLength(20_001)
    expect(model.requests[0]?.messages[0]?.content).toBe(contentOf(session.at(1)))
    await run.dispose()
  })
})

/** Gives an agent a past, without asking a model. */
function appendTurns({ session, model }: Agent, count: number): void {
  const usage = { inputTokens: 1, outputTokens: 1 }
  for (let turn = 1; turn <= count; turn += 1) {
    session.append('turn/start', { turn, model })
    session.append('user/message', { content: [{ type: 'text', text: `question ${turn}` }] })
    session.append('step/start', { step: 1 })
    const content = [{ type: 'text' as const, text: `answer ${turn}` }]
    session.append('assistant/message', { content, model, usage, finish: 'stop' })
    session.append('step/end', { step: 1 })
    session.append('turn/end', { reason: 'completed' })
  }
}

function contentOf(event: ReturnType<Agent['session']['at']>): unknown {
  return event?.type === 'user/message' ? event.data.content : undefined
}
