/** Rules 7 and 8: what the runtime announces of a child, and what the logs keep of it. */
import type {
  SubagentRunEnd,
  SubagentRunInfo,
  SubagentStartRequest,
} from '@deepseek-ai/dsh-subagent'
import { describe, expect, test } from 'vitest'
import { type Behaviour, type ContractBackend, promptFor } from '../backend.ts'
import { type Bench, createBench } from '../bench.ts'

const answer = { does: 'answer', text: 'done' } as const

export function describeTraces(backend: ContractBackend): void {
  describeEvents(backend)
  describeListeners(backend)
  describeParentLog(backend)
  if (backend.isInProcess) describeOwnSession(backend)
  else describeForeignSession(backend)
}

function describeEvents(backend: ContractBackend): void {
  describe('rule 7, lifecycle events', () => {
    test('tell of the start and of the end, once each', async () => {
      const bench = await createBench(backend)
      const { starts, ends } = recordEvents(bench)

      const run = bench.start(answer, { label: 'a task' })
      const { usage } = await run.result
      await run.dispose()

      const { parent } = bench
      const { providerName: provider } = backend
      const info = { runId: expect.any(String), provider, id: run.id, parent, label: 'a task' }
      const lastAssistantMessage = [{ type: 'text', text: 'done' }]
      expect(starts).toEqual([info])
      expect(ends).toEqual([
        { ...info, stopReason: 'completed', ...(usage && { usage }), lastAssistantMessage },
      ])
      expect(ends[0]?.runId).toBe(starts[0]?.runId)
    })

    test('leave out the label and the message that there are not', async () => {
      const bench = await createBench(backend)
      const { starts, ends } = recordEvents(bench)

      await bench.delegate({ does: 'answer', text: '' })

      expect(starts[0]).not.toHaveProperty('label')
      expect(ends[0]).not.toHaveProperty('lastAssistantMessage')
    })

    test('have a run id of their own for each run', async () => {
      const bench = await createBench(backend)
      const { starts, ends } = recordEvents(bench)

      await Promise.all([bench.delegate(answer), bench.delegate(answer), bench.delegate(answer)])

      expect(new Set(starts.map(({ runId }) => runId)).size).toBe(3)
      expect(new Set(ends.map(({ runId }) => runId)).size).toBe(3)
    })

    test('include the text of the child while it runs, between start and end', async () => {
      const { ctx, startTalking, gatePath, release } = await createBench(backend)
      const order: string[] = []
      let heard = ''
      ctx.on('subagent/start', () => void order.push('start'))
      ctx.on('subagent/update', (update) => {
        if (update.kind !== 'text') return
        heard += update.text
        if (order.at(-1) !== 'text') order.push('text')
      })
      ctx.on('subagent/end', () => void order.push('end'))

      const run = await startTalking({ does: 'answer', text: 'word', after: gatePath })
      await release()
      await run.result

      expect(heard).toBe('word')
      expect(order).toEqual(['start', 'text', 'end'])
      await run.dispose()
    })
  })
}

function describeListeners(backend: ContractBackend): void {
  describe('rule 7, a listener that fails', () => {
    test.each(['subagent/start', 'subagent/update', 'subagent/end'] as const)(
      'to %s harms neither the run nor other listeners',
      async (event) => {
        const { ctx, delegate } = await createBench(backend, {
          expectErrors: /thrown|rejected|a listener of/,
        })
        let heard = 0
        ctx.on(event, () => {
          throw new Error('thrown')
        })
        // A listener may be asynchronous whatever its type says.
        ctx.on(event, () => Promise.reject(new Error('rejected')))
        ctx.on(event, () => {
          heard += 1
        })

        const result = await delegate(answer)

        expect(result.stopReason).toBe('completed')
        expect(heard).toBeGreaterThan(0)
      },
    )

    test('cannot change the result by what it is given', async () => {
      const { ctx, delegate } = await createBench(backend)
      ctx.on('subagent/end', ({ lastAssistantMessage }) => {
        try {
          Object.assign(lastAssistantMessage?.[0] ?? {}, { text: 'forged' })
        } catch {
          // It is frozen, which is one way to keep the rule.
        }
      })

      const { output } = await delegate(answer)

      expect(output).toEqual([{ type: 'text', text: 'done' }])
    })
  })
}

function describeParentLog(backend: ContractBackend): void {
  describe('rule 8, the log of the parent', () => {
    test.each([
      ['answers', { does: 'messages', texts: ['one', 'done'] } as const, false],
      ['fails', { does: 'fail', text: 'half', message: 'lost' } as const, true],
    ])('holds only the call and the result of a child that %s', async (_, behaviour, isError) => {
      const { parent } = await createBench(backend)
      const prompt = promptFor(behaviour)

      await parent.send(promptFor({ does: 'delegate', prompt, text: 'the end' }))

      const events = [...parent.session.events()]
      expect(events.map(({ type }) => type)).toEqual([
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
      const [result] = events.flatMap((event) => (event.type === 'tool/result' ? [event] : []))
      expect(result?.data).toMatchObject({ name: 'subagent', isError })
    })
  })
}

function describeOwnSession(backend: ContractBackend): void {
  describe('rule 8, the session of the child', () => {
    test('is its own, and names parent, provider, call and label', async () => {
      const { ctx, start, parent, folder } = await createBench(backend)

      const run = start({ does: 'hang', text: '' }, { callId: 'call-1', label: 'a task' })

      expect(run.id).not.toBe(parent.id)
      expect(ctx.sessions.get(run.id)?.header).toMatchObject({
        id: run.id,
        cwd: folder,
        parentSession: parent.id,
        delegationDepth: 1,
        origin: { provider: backend.providerName, callId: 'call-1', label: 'a task' },
      })
      await run.dispose()
    })

    test.each<[string, Behaviour, Partial<SubagentStartRequest>, string]>([
      ['completes', answer, {}, 'completed'],
      [
        'reaches its token limit',
        { does: 'stop', text: 'half', reason: 'max-tokens' },
        {},
        'max-tokens',
      ],
      ['refuses', { does: 'stop', text: 'no', reason: 'refusal' }, {}, 'refusal'],
      ['fails', { does: 'fail', text: 'half', message: 'lost' }, {}, 'error'],
      ['takes too long', { does: 'hang', text: 'half' }, { timeoutMs: 50 }, 'aborted'],
      [
        'takes too many steps',
        { does: 'messages', texts: ['one', 'two', 'three'] },
        { agentOptions: { maxSteps: 2 } },
        'max-steps',
      ],
    ])('is sound to its end when the child %s', async (_, behaviour, request, reason) => {
      // The core checks every log, and an error that it logs fails the test.
      const { ctx, start } = await createBench(backend)
      const run = start(behaviour, request)
      const session = ctx.sessions.get(run.id)

      await run.result
      await run.dispose()

      expect(session?.at(session.length - 1)).toMatchObject({ type: 'turn/end', data: { reason } })
    })

    test('closes the turn that a cancel has cut off', async () => {
      const { ctx, start } = await createBench(backend)
      const run = start({ does: 'hang', text: '' })
      const session = ctx.sessions.get(run.id)

      await run.dispose()

      expect(session?.lastTurnEnd).toMatchObject({ reason: 'aborted' })
    })
  })
}

function describeForeignSession(backend: ContractBackend): void {
  describe('rule 8, the session of the child', () => {
    test('is not here, and the id of the run names it all the same', async () => {
      const { ctx, start, parent } = await createBench(backend)

      const run = start({ does: 'hang', text: '' })

      expect(run.id).not.toBe(parent.id)
      expect(ctx.sessions.list()).toEqual([parent.session])
      expect(ctx.subagents.runs()).toMatchObject([{ id: run.id, parentId: parent.id }])
      await run.dispose()
    })
  })
}

function recordEvents({ ctx }: Bench): { starts: SubagentRunInfo[]; ends: SubagentRunEnd[] } {
  const starts: SubagentRunInfo[] = []
  const ends: SubagentRunEnd[] = []
  ctx.on('subagent/start', (info) => void starts.push(info))
  ctx.on('subagent/end', (end) => void ends.push(end))
  return { starts, ends }
}
