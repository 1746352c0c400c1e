/** Rules 4 and 5: runs end when they are told to. */
import { getEventListeners } from 'node:events'
import { gate } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ContractBackend } from '../backend.ts'
import {
  countListeners,
  createBench,
  deaf,
  disposeLimitMs,
  hanging,
  promptly,
  textOf,
} from '../bench.ts'

export function describeStops(backend: ContractBackend): void {
  describeDispose(backend)
  describeCancel(backend)
  if (backend.isInProcess) describeStuckTool(backend)
  describeSiblings(backend)
  describeSignal(backend)
}

function describeDispose(backend: ContractBackend): void {
  describe('rule 4, dispose', () => {
    test('leaves nothing of a child that has ended', async () => {
      const { ctx, start, alive, parent } = await createBench(backend)
      const run = start({ does: 'answer', text: 'done' })
      await run.result

      await run.dispose()

      expect(alive()).toBe(0)
      expect(ctx.subagents.runs()).toEqual([])
      expect(ctx.agents.list()).toEqual([parent])
      expect(ctx.sessions.list()).toEqual([parent.session])
    })

    test('gives one promise, however often it is called', async () => {
      const { start } = await createBench(backend)
      const run = start(hanging)

      const disposal = run.dispose()

      expect(run.dispose()).toBe(disposal)
      await disposal
      expect(run.dispose()).toBe(disposal)
    })

    test.each([
      ['runs', hanging],
      ['ignores every polite request', deaf],
    ])('ends a child that %s, as aborted, and waits until it is gone', async (_, behaviour) => {
      const { startTalking, alive } = await createBench(backend)
      const run = await startTalking(behaviour)
      expect(alive()).toBe(1)

      await promptly(run.dispose(), disposeLimitMs)

      expect(alive()).toBe(0)
      expect((await run.result).stopReason).toBe('aborted')
    })

    test('ends a child that has hardly started', async () => {
      const { ctx, start, alive } = await createBench(backend)

      await promptly(start(hanging).dispose(), disposeLimitMs)

      expect(alive()).toBe(0)
      expect(ctx.subagents.runs()).toEqual([])
    })

    test('after each of ten runs leaves listeners and agents as they were', async () => {
      const { ctx, delegate, alive, parent } = await createBench(backend)
      await delegate({ does: 'answer', text: 'done' })
      const listeners = countListeners(ctx)

      for (let run = 0; run < 10; run += 1) await delegate({ does: 'answer', text: 'done' })

      expect(countListeners(ctx)).toBe(listeners)
      expect(alive()).toBe(0)
      expect(ctx.agents.list()).toEqual([parent])
      expect(ctx.sessions.list()).toEqual([parent.session])
    })
  })
}

function describeCancel(backend: ContractBackend): void {
  describe('rule 5, cancel', () => {
    test.each([
      ['works', hanging],
      ['ignores it', deaf],
    ])('settles the result at once when the child %s', async (_, behaviour) => {
      const { startTalking, alive } = await createBench(backend)
      const run = await startTalking(behaviour)
      expect(alive()).toBe(1)

      run.cancel('enough')

      const result = await promptly(run.result)
      expect(result).toMatchObject({ stopReason: 'aborted', diagnostic: 'enough' })
      await promptly(run.dispose(), disposeLimitMs)
    })

    test('settles the result of a child that has hardly started', async () => {
      const { start } = await createBench(backend)
      const run = start(hanging)

      run.cancel()

      expect((await promptly(run.result)).stopReason).toBe('aborted')
      await run.dispose()
    })

    test('wins over a child that then completes', async () => {
      const { startTalking, gatePath, release } = await createBench(backend)
      const behaviour = { does: 'answer', text: 'done', after: gatePath, isDeaf: true } as const
      const run = await startTalking(behaviour)

      run.cancel()
      await release()

      expect((await promptly(run.result)).stopReason).toBe('aborted')
      await run.dispose()
    })

    test('may be called twice, and changes nothing after the end', async () => {
      const { start } = await createBench(backend)
      const [ended, cancelled] = [start({ does: 'answer', text: 'done' }), start(hanging)]
      await ended.result

      ended.cancel()
      cancelled.cancel('first')
      cancelled.cancel('second')

      expect((await ended.result).stopReason).toBe('completed')
      expect(await cancelled.result).toMatchObject({ stopReason: 'aborted', diagnostic: 'first' })
      await Promise.all([ended.dispose(), cancelled.dispose()])
    })
  })
}

function describeStuckTool(backend: ContractBackend): void {
  describe('rule 5, cancel of a child whose tool ignores it', () => {
    test('settles the result at once, with what the child had said', async () => {
      const { ctx, start } = await createBench(backend)
      const called = gate()
      const held = gate()
      ctx.tools.register({
        name: 'stuck',
        description: 'does not end',
        parameters: z.object({}),
        execute: async () => {
          called.open()
          await held.opened
          return 'late'
        },
      })
      const run = start({ does: 'messages', texts: ['so far', 'never said'], tool: 'stuck' })
      await called.opened

      run.cancel()

      const result = await promptly(run.result)
      expect(result.stopReason).toBe('aborted')
      expect(textOf(result)).toBe('so far')
      held.open()
      await run.dispose()
    })
  })
}

function describeSiblings(backend: ContractBackend): void {
  describe('rule 5, cancel of one of several', () => {
    test('leaves its sibling alone', async () => {
      const { start, gatePath, release } = await createBench(backend)
      const [one, other] = [start(hanging), start({ does: 'answer', text: 'ok', after: gatePath })]

      one.cancel()
      await one.dispose()
      await release()

      const result = await other.result
      expect(result.stopReason).toBe('completed')
      expect(textOf(result)).toBe('ok')
      await other.dispose()
    })

    test('by a signal leaves those on other signals alone', async () => {
      const { start, gatePath, release } = await createBench(backend)
      const controllers = [new AbortController(), new AbortController()] as const
      const behaviour = { does: 'answer', text: 'ok', after: gatePath } as const
      const [one, other] = [
        start(hanging, { signal: controllers[0].signal }),
        start(behaviour, { signal: controllers[1].signal }),
      ]

      controllers[0].abort()
      await release()

      expect((await one.result).stopReason).toBe('aborted')
      expect((await other.result).stopReason).toBe('completed')
      await Promise.all([one.dispose(), other.dispose()])
    })
  })
}

function describeSignal(backend: ContractBackend): void {
  describe('rule 5, the signal', () => {
    test.each([
      ['works', hanging],
      ['ignores it', deaf],
    ])('settles the result at once when the child %s', async (_, behaviour) => {
      const { startTalking } = await createBench(backend)
      const controller = new AbortController()
      const run = await startTalking(behaviour, { signal: controller.signal })

      controller.abort('the user left')

      const result = await promptly(run.result)
      expect(result).toMatchObject({ stopReason: 'aborted', diagnostic: 'the user left' })
      await promptly(run.dispose(), disposeLimitMs)
    })

    test('that is aborted already starts nothing', async () => {
      const { ctx, start, started, alive } = await createBench(backend)
      let events = 0
      ctx.on('subagent/start', () => {
        events += 1
      })

      const run = start(hanging, { signal: AbortSignal.abort() })

      expect((await promptly(run.result)).stopReason).toBe('aborted')
      await run.dispose()
      expect([started(), alive(), events]).toEqual([0, 0, 0])
      expect(ctx.subagents.runs()).toEqual([])
    })

    test('keeps no listener of a run that has ended, and is not asked for many', async () => {
      const { start } = await createBench(backend)
      const { signal } = new AbortController()

      for (let batch = 0; batch < 2; batch += 1) {
        const runs = Array.from({ length: 4 }, () =>
          start({ does: 'answer', text: '' }, { signal }),
        )
        await Promise.all(runs.map((run) => run.result))
        await Promise.all(runs.map((run) => run.dispose()))
      }

      expect(getEventListeners(signal, 'abort')).toEqual([])
    })
  })
}
