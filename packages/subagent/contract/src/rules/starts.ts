/** Rules 1 and 9: what a start may ask for, and how deep it may go. */
import { describe, expect, test } from 'vitest'
import { type ContractBackend, promptFor } from '../backend.ts'
import { createBench, expectNothing, textOf } from '../bench.ts'

const answer = { does: 'answer', text: 'ok' } as const
const schema = {
  type: 'object',
  properties: { n: { type: 'number' } },
  required: ['n'],
  additionalProperties: false,
}

/** What a request adds to ask for each capability. */
const asking = {
  outputSchema: { outputSchema: schema },
  depthLimit: { maxDepth: 5 },
  toolFilter: { toolFilter: { deny: ['probe'] } },
} as const

export function describeStarts(backend: ContractBackend): void {
  describe('rule 1, start-time features', () => {
    test('the provider says what it can do and what its children know', async () => {
      const { ctx } = await createBench(backend)

      const provider = ctx.subagents.getProvider(backend.providerName)

      expect(provider?.capabilities).toEqual(backend.capabilities)
      expect(provider?.inheritsParentContext).toBe(backend.inheritsParentContext)
    })

    const unmet = (['outputSchema', 'depthLimit', 'toolFilter'] as const).filter(
      (capability) => !backend.capabilities[capability],
    )
    test.each(unmet)('%s is refused before anything is created', async (capability) => {
      const bench = await createBench(backend)

      expect(() => bench.start(answer, asking[capability])).toThrow(
        expect.objectContaining({ code: 'UNSUPPORTED_CAPABILITY' }),
      )

      expectNothing(bench)
    })

    test('a request that nobody can honour is refused before anything is created', async () => {
      const bench = await createBench(backend)

      expect(() => bench.start(answer, { prompt: ' ' })).toThrow(
        expect.objectContaining({ code: 'INVALID_REQUEST' }),
      )

      expectNothing(bench)
    })
  })
  if (backend.capabilities.outputSchema) describeOutputSchema(backend)
  if (backend.capabilities.toolFilter) describeToolFilter(backend)
  if (backend.takesMessages) describeMessages(backend)
  else describeAbsent(backend, 'sendMessage')
  if (backend.takesPrompts) describeFurtherPrompts(backend)
  else describeAbsent(backend, 'resume')
  describeDepth(backend)
  if (backend.isInProcess) describeOwnDepth(backend)
  if (backend.capabilities.depthLimit) describeDepthLimit(backend)
}

function describeOutputSchema(backend: ContractBackend): void {
  describe('rule 1, outputSchema', () => {
    test('the first value that fits is the structured result', async () => {
      const { delegate } = await createBench(backend)
      const values = [{ n: 'one' }, { n: 2 }, { n: 3 }]

      const result = await delegate({ does: 'hand-in', values }, { outputSchema: schema })

      expect(result).toMatchObject({ stopReason: 'completed', structured: { n: 2 } })
    })

    test.each([
      ['never fits', [{ n: 'a' }, { n: 'b' }, { n: 'c' }, { n: 4 }]],
      ['is never handed in', []],
    ])('a value that %s makes an error that says so', async (_, values) => {
      const { delegate } = await createBench(backend)

      const result = await delegate({ does: 'hand-in', values }, { outputSchema: schema })

      expect(result.stopReason).toBe('error')
      expect(result).not.toHaveProperty('structured')
      expect(result.diagnostic).toMatch(/\S/)
    })

    test.each([
      ['without an object at its root', { type: 'array' }],
      ['that is broken', { type: 'object', properties: { n: { type: 'nothing' } } }],
    ])('a schema %s is refused before there is a child', async (_, outputSchema) => {
      const bench = await createBench(backend)

      expect(() => bench.start(answer, { outputSchema })).toThrow(
        expect.objectContaining({ code: 'INVALID_REQUEST' }),
      )

      expectNothing(bench)
    })
  })
}

function describeToolFilter(backend: ContractBackend): void {
  const calling = { does: 'messages', texts: ['', 'tried'], tool: 'probe' } as const

  describe('rule 1, toolFilter', () => {
    test('without one the child has the tools of its parent', async () => {
      const { delegate, probes } = await createBench(backend)

      await delegate(calling)

      expect(probes()).toBe(1)
    })

    test.each([
      ['denied', { deny: ['probe'] }],
      ['not allowed', { allow: ['subagent'] }],
      ['allowed and denied', { allow: ['probe'], deny: ['probe'] }],
    ])(
      'a tool that is %s is hidden, and refused when it is called all the same',
      async (...args) => {
        const { delegate, probes, model } = await createBench(backend)

        const result = await delegate(calling, { toolFilter: args[1] })

        expect(textOf(result)).toBe('tried')
        expect(probes()).toBe(0)
        expect(model.requests[0]?.tools.map(({ name }) => name)).not.toContain('probe')
      },
    )

    test('a child never has a tool that its parent may not use', async () => {
      const { delegate, probes, createParent } = await createBench(backend)
      const toolScope = { allows: (name: string) => name !== 'probe' }
      const { agent: parent } = createParent({ toolScope })

      await delegate(calling, { parent, toolFilter: { allow: ['probe'] } })

      expect(probes()).toBe(0)
    })

    test('an allow that names no tool fails the start and leaves nothing', async () => {
      const bench = await createBench(backend)

      expect(() => bench.start(answer, { toolFilter: { allow: ['prob'] } })).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          message: expect.stringMatching(/"prob"/),
        }),
      )

      expectNothing(bench)
    })
  })
}

function describeMessages(backend: ContractBackend): void {
  describe('rule 1, sendMessage', () => {
    test('reaches the child while it runs', async () => {
      const { start, gatePath, release } = await createBench(backend)
      const run = start({ does: 'answer', text: 'first', after: gatePath })

      await run.sendMessage?.(promptFor({ does: 'answer', text: 'second' }))
      await release()

      expect(textOf(await run.result)).toBe('second')
      await run.dispose()
    })

    test('is refused by a child that has ended', async () => {
      const { start } = await createBench(backend)
      const run = start(answer)
      await run.result

      await expect(run.sendMessage?.(promptFor(answer))).rejects.toThrow(/over/)
      await run.dispose()
    })
  })
}

function describeFurtherPrompts(backend: ContractBackend): void {
  describe('rule 1, resume', () => {
    test('has a result of its own', async () => {
      const { start } = await createBench(backend)
      const run = start(answer)
      await run.result

      const result = await run.resume?.(promptFor({ does: 'answer', text: 'again' }))

      expect(result?.stopReason).toBe('completed')
      expect(textOf(result ?? { output: [] })).toBe('again')
      await run.dispose()
    })
  })
}

/** What a run cannot do is not there to be called. */
function describeAbsent(backend: ContractBackend, method: 'sendMessage' | 'resume'): void {
  describe(`rule 1, ${method}`, () => {
    test('is absent from a run', async () => {
      const { start } = await createBench(backend)
      const run = start(answer)

      expect(method in run).toBe(false)
      await run.dispose()
    })
  })
}

function describeDepth(backend: ContractBackend): void {
  const hanging = { does: 'hang', text: '' } as const

  describe('rule 9, depth', () => {
    test.each([
      ['the header of its parent', { delegationDepth: 3 }, 4],
      ['the options of its parent, when they say more', { options: { subagentDepth: 5 } }, 6],
      [
        'the header of its parent, when that says more',
        { delegationDepth: 3, options: { subagentDepth: 1 } },
        4,
      ],
    ])('a child is one deeper than %s', async (_, options, expected) => {
      const { ctx, start, createParent } = await createBench(backend)

      const run = start(hanging, { parent: createParent(options).agent })

      expect(ctx.subagents.runs().map(({ depth }) => depth)).toEqual([expected])
      await run.dispose()
    })
  })
}

function describeOwnDepth(backend: ContractBackend): void {
  describe('rule 9, the session of a child', () => {
    test('keeps its depth, at every level', async () => {
      const { ctx, delegate, createParent } = await createBench(backend)
      const depths: number[] = []
      ctx.on('agent/created', ({ agent }) => {
        depths.push(agent.session.header.delegationDepth)
      })
      const { agent: parent } = createParent({ delegationDepth: 1 })

      await delegate({ does: 'delegate', prompt: promptFor(answer), text: 'ok' }, { parent })

      expect(depths).toEqual([1, 2, 3])
    })
  })
}

function describeDepthLimit(backend: ContractBackend): void {
  describe('rule 9, maxDepth', () => {
    test.each([
      [0, 0],
      [2, 2],
      [2, 3],
    ])('of %i refuses a child of a parent at depth %i, and leaves nothing', async (...args) => {
      const [maxDepth, delegationDepth] = args
      const bench = await createBench(backend)
      const { agent: parent, dispose } = bench.createParent({ delegationDepth })

      expect(() => bench.start(answer, { parent, maxDepth })).toThrow(
        expect.objectContaining({ code: 'DEPTH_EXCEEDED', name: 'SubagentDepthError' }),
      )

      await dispose()
      expectNothing(bench)
    })

    test('allows a child that is exactly as deep', async () => {
      const { delegate, createParent } = await createBench(backend)
      const { agent: parent } = createParent({ delegationDepth: 1 })

      const { stopReason } = await delegate(answer, { parent, maxDepth: 2 })

      expect(stopReason).toBe('completed')
    })

    test.each([['-1'], ['1.5'], ['NaN'], ['Infinity'], ['9007199254740992']])(
      'of %s is refused before there is a child',
      async (value) => {
        const bench = await createBench(backend)

        expect(() => bench.start(answer, { maxDepth: Number(value) })).toThrow(
          expect.objectContaining({ code: 'INVALID_REQUEST' }),
        )

        expectNothing(bench)
      },
    )
  })
}
