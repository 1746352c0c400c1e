import { violationsOf } from '@deepseek-ai/dsh-invariants'
import { gate, type ScriptedReply, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { createBench, isAnswered, registerTool, textOf } from './helpers.ts'

describe('the stop reason of a child', () => {
  const failure = { code: 'MODEL_RATE_LIMIT', message: 'rate limited, try again in 20 s' }
  const usage = { inputTokens: 10, outputTokens: 5 }

  test.each<[string, ScriptedReply, object]>([
    ['answers', { text: 'done' }, { stopReason: 'completed' }],
    [
      'is cut at its token limit',
      { text: 'half an ans', finish: 'max-tokens' },
      { stopReason: 'max-tokens' },
    ],
    [
      'is cut while it writes a call',
      { text: 'let me', calls: [{ name: 'any' }], finish: 'max-tokens' },
      { stopReason: 'max-tokens' },
    ],
    ['refuses', { text: 'I must not', finish: 'refusal' }, { stopReason: 'refusal' }],
    [
      'has a model that fails in mid-sentence',
      { text: 'the answer is', finish: 'error', error: failure },
      { stopReason: 'error', diagnostic: failure.message },
    ],
  ])('that %s comes with the text so far', async (_title, reply, expected) => {
    const { delegate } = await createBench({ model: [reply] })

    const result = await delegate()

    expect(result).toEqual({
      output: [{ type: 'text', text: reply.text }],
      usage,
      ...expected,
    })
  })

  test('that never stops calling tools is error, and says which limit was reached', async () => {
    const { ctx, delegate } = await createBench({
      model: () => ({ text: 'once more', calls: [{ name: 'look' }] }),
    })
    registerTool(ctx, 'look')

    const result = await delegate({ agentOptions: { maxSteps: 3 } })

    expect(result).toMatchObject({
      stopReason: 'error',
      diagnostic: 'stopped after 3 steps: the turn is longer than maxSteps allows',
      output: [{ type: 'text', text: 'once more' }],
    })
  })

  test('that says nothing is completed, with an empty output', async () => {
    const { delegate } = await createBench({ model: [{ text: '' }] })

    const result = await delegate()

    expect(result).toMatchObject({ stopReason: 'completed', output: [] })
  })

  test('whose agent is cancelled by somebody else is aborted', async () => {
    const { ctx, start } = await createBench({ model: () => ({ until: new Promise(() => {}) }) })
    const run = start()
    await waitFor('the child runs', () => ctx.agents.get(run.id)?.status === 'running')

    ctx.agents.get(run.id)?.cancel('not now')

    expect(await run.result).toMatchObject({ stopReason: 'aborted', diagnostic: 'not now' })
    await run.dispose()
  })
})

describe('a cancel', () => {
  test('right after the start prevents every model call', async () => {
    const { model, start, ctx } = await createBench()
    const run = start()
    const session = ctx.sessions.get(run.id)

    run.cancel('changed my mind')
    const result = await run.result
    await run.dispose()

    expect(result).toMatchObject({
      output: [],
      stopReason: 'aborted',
      diagnostic: 'changed my mind',
    })
    expect(model.requests).toEqual([])
    expect(violationsOf(session?.events() ?? [])).toEqual([])
  })

  test('in mid-stream keeps the text that was streamed', async () => {
    const { model, start, ctx } = await createBench({
      model: () => ({ deltas: ['the answer ', 'might be'], until: new Promise(() => {}) }),
    })
    const texts: string[] = []
    ctx.on('agent/delta', ({ text }) => texts.push(text))
    const run = start()
    const session = ctx.sessions.get(run.id)
    await waitFor('both deltas are there', () => texts.length === 2)

    run.cancel()
    const result = await run.result
    await run.dispose()

    expect(result.stopReason).toBe('aborted')
    expect(textOf(result)).toBe('the answer might be')
    expect(model.requests).toHaveLength(1)
    expect(violationsOf(session?.events() ?? [])).toEqual([])
  })

  test('does not wait for a model that is deaf', async () => {
    const { model, start } = await createBench({
      model: () => ({ text: 'la la la', isDeaf: true }),
    })
    const run = start()
    await waitFor('the model is asked', () => model.requests.length === 1)

    run.cancel()
    const result = await run.result

    expect(result).toMatchObject({ stopReason: 'aborted' })
    await run.dispose()
  })

  test('does not wait for a tool that is deaf, and keeps the last text', async () => {
    const held = gate()
    const { ctx, start } = await createBench({
      abortGraceMs: 60_000,
      model: [{ text: 'let me look', calls: [{ name: 'stare' }] }],
    })
    let isStaring = false
    registerTool(ctx, 'stare', async () => {
      isStaring = true
      await held.opened
      return 'seen'
    })
    const run = start()
    await waitFor('the tool runs', () => isStaring)

    run.cancel()
    const result = await run.result

    expect(textOf(result)).toBe('let me look')
    expect(result.stopReason).toBe('aborted')
    held.open()
    await run.dispose()
  })

  test('between two steps prevents the next model call', async () => {
    const { ctx, model, start } = await createBench({
      model: (request) => (isAnswered(request) ? 'done' : { calls: [{ name: 'look' }] }),
    })
    registerTool(ctx, 'look')
    ctx.on('session/event', ({ event }) => {
      if (event.type === 'tool/result') run.cancel('seen enough')
    })
    const run = start()

    const result = await run.result
    await run.dispose()

    expect(result).toMatchObject({ stopReason: 'aborted', diagnostic: 'seen enough' })
    expect(model.requests).toHaveLength(1)
  })

  test('after the end changes nothing', async () => {
    const { start } = await createBench()
    const run = start()
    const result = await run.result

    run.cancel()
    run.cancel()

    expect(await run.result).toBe(result)
    expect(result.stopReason).toBe('completed')
    await run.dispose()
  })
})

describe('dispose', () => {
  test('waits until the tools of the child have ended', async () => {
    const held = gate()
    const { ctx, start } = await createBench({ model: [{ calls: [{ name: 'stare' }] }] })
    let isStaring = false
    registerTool(ctx, 'stare', async () => {
      isStaring = true
      await held.opened
      return 'seen'
    })
    const run = start()
    await waitFor('the tool runs', () => isStaring)
    let isDisposed = false

    const disposal = run.dispose().finally(() => {
      isDisposed = true
    })
    await run.result
    await new Promise(setImmediate)
    const wasDisposed = isDisposed
    held.open()
    await disposal

    expect(wasDisposed).toBe(false)
    expect(ctx.agents.get(run.id)).toBeUndefined()
  })
})

describe('sendMessage', () => {
  test('reaches the child before its next step', async () => {
    const held = gate()
    const { ctx, model, start } = await createBench({
      model: (request) => (isAnswered(request) ? 'done' : { calls: [{ name: 'look' }] }),
    })
    registerTool(ctx, 'look', async () => {
      await held.opened
      return 'seen'
    })
    const run = start()
    await waitFor('the child works', () => model.requests.length === 1)

    await run.sendMessage?.('mind the gap')
    held.open()
    await run.result

    const last = model.requests[1]?.messages.at(-1)
    expect(last).toEqual({ role: 'user', content: [{ type: 'text', text: 'mind the gap' }] })
    expect(ctx.agents.get(run.id)?.session.turnCount).toBe(1)
    await run.dispose()
  })

  test('before the first step shares the turn of the prompt', async () => {
    const { model, start } = await createBench()
    const run = start()

    await run.sendMessage?.('and hurry')
    await run.result

    expect(model.requests).toHaveLength(1)
    expect(model.requests[0]?.messages).toHaveLength(2)
    await run.dispose()
  })

  test.each(['ended', 'was cancelled'])(
    'is refused once the child %s, and opens no further turn',
    async (how) => {
      const { ctx, model, start } = await createBench({
        model: () => ({ text: 'done', until: held.opened }),
      })
      const held = gate()
      const run = start()
      const child = ctx.agents.get(run.id)
      await waitFor('the child works', () => model.requests.length === 1)
      if (how === 'ended') held.open()
      else run.cancel()
      if (how === 'ended') await run.result

      const sent = run.sendMessage?.('one more thing')

      await expect(sent).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: `run "${run.id}" is over: start another one`,
      })
      await child?.whenIdle()
      expect(child?.session.turnCount).toBe(1)
      await run.dispose()
    },
  )

  test('is refused as soon as the turn has its end, also before the result is out', async () => {
    const { ctx, start } = await createBench()
    const refusals: unknown[] = []
    const sent: (Promise<void> | undefined)[] = []
    ctx.on('session/event', ({ event }) => {
      if (event.type === 'turn/end') sent.push(run.sendMessage?.('wait'))
    })
    const run = start()
    const child = ctx.agents.get(run.id)

    await run.result
    for (const each of sent) await each?.catch((error: unknown) => refusals.push(error))

    expect(refusals).toHaveLength(1)
    await child?.whenIdle()
    expect(child?.session.turnCount).toBe(1)
    await run.dispose()
  })
})
