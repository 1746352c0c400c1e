import { describe, expect, test } from 'vitest'
import { depthOf, SubagentDepthError, type SubagentStartRequest } from '../src/index.ts'
import { abortListenersOf, bootSeam, createParent, createStub } from './helpers.ts'

type Extra = Partial<SubagentStartRequest>

interface Outcome {
  /** What `start` threw. */
  readonly refusal: unknown
  /** How much there is then that should not be: children, announced or listed runs, agents. */
  readonly left: number
}

/** Starts with what a test adds to a sound request. */
async function outcomeOf(extra: Extra, capabilities = {}): Promise<Outcome> {
  const ctx = await bootSeam()
  const stub = createStub({
    capabilities: { outputSchema: true, depthLimit: true, toolFilter: true, ...capabilities },
  })
  ctx.subagents.registerProvider(stub)
  const parent = createParent(ctx)
  let announced = 0
  ctx.on('subagent/start', () => void (announced += 1))
  ctx.on('subagent/end', () => void (announced += 1))
  let refusal: unknown
  try {
    ctx.subagents.start('stub', { prompt: 'go', parent, ...extra })
  } catch (error) {
    refusal = error
  }
  const agents = ctx.agents.list().length - 1
  return { refusal, left: stub.runs.length + announced + ctx.subagents.runs().length + agents }
}

describe('the check of a start', () => {
  const all: Extra = { outputSchema: { type: 'object' }, maxDepth: 3, toolFilter: { deny: ['x'] } }

  test.each([
    ['outputSchema', { outputSchema: false, depthLimit: false, toolFilter: false }],
    ['depthLimit', { depthLimit: false, toolFilter: false }],
    ['toolFilter', { toolFilter: false }],
  ])('refuses the first unmet capability, %s, before anything else', async (name, capabilities) => {
    const { refusal, left } = await outcomeOf({ ...all, prompt: '', maxDepth: -1 }, capabilities)

    expect(refusal).toMatchObject({
      code: 'UNSUPPORTED_CAPABILITY',
      message: `subagent provider "stub" does not support "${name}": leave it out or use another provider`,
    })
    expect(left).toBe(0)
  })

  test('asks no capability of a request that needs none', async () => {
    const none = { outputSchema: false, depthLimit: false, toolFilter: false }

    const { refusal, left } = await outcomeOf(
      { outputSchema: undefined, maxDepth: undefined, toolFilter: undefined },
      none,
    )

    expect(refusal).toBeUndefined()
    expect(left).toBe(3)
  })

  test.each<[string, Extra, RegExp]>([
    ['an empty prompt', { prompt: '' }, /^prompt must not be empty, not ""$/],
    ['a blank prompt', { prompt: ' \n\t' }, /^prompt must not be empty/],
    ['an empty filter', { toolFilter: {} }, /^toolFilter must name tools .*, not "\{\}"$/],
    ['a filter that denies nothing', { toolFilter: { deny: [] } }, /^toolFilter must name tools/],
    ['maxDepth as text', { maxDepth: '3' as never }, /^maxDepth must .*, not "3"$/],
    ['a fraction as maxDepth', { maxDepth: 1.5 }, /^maxDepth must be a non-negative safe integer/],
    ['a negative maxDepth', { maxDepth: -1 }, /, not "-1"$/],
    ['NaN as maxDepth', { maxDepth: Number.NaN }, /, not "NaN"$/],
    ['an endless maxDepth', { maxDepth: Infinity }, /, not "Infinity"$/],
    ['an unsafe maxDepth', { maxDepth: 2 ** 53 }, /^maxDepth must be/],
    ['no timeout', { timeoutMs: 0 }, /^timeoutMs must be more than 0 and at most 2147483647 ms/],
    ['a negative timeout', { timeoutMs: -5 }, /, not "-5"$/],
    ['a timeout as text', { timeoutMs: '5' as never }, /^timeoutMs must .*, not "5"$/],
    ['NaN as timeout', { timeoutMs: Number.NaN }, /^timeoutMs must/],
    ['an endless timeout', { timeoutMs: Infinity }, /^timeoutMs must/],
    ['a timeout longer than timers take', { timeoutMs: 2 ** 31 }, /^timeoutMs must/],
    ['no idle timeout', { idleTimeoutMs: 0 }, /^idleTimeoutMs must/],
    ['an idle timeout as text', { idleTimeoutMs: '5' as never }, /^idleTimeoutMs must/],
    ['NaN as idle timeout', { idleTimeoutMs: Number.NaN }, /^idleTimeoutMs must/],
  ])('refuses %s and leaves nothing', async (_title, extra, message) => {
    const { refusal, left } = await outcomeOf(extra)

    expect(refusal).toMatchObject({
      name: 'SubagentError',
      code: 'INVALID_REQUEST',
      message: expect.stringMatching(message) as string,
    })
    expect(left).toBe(0)
  })

  test.each<[string, Extra]>([
    ['an allow list without a tool', { toolFilter: { allow: [] } }],
    ['a deny list', { toolFilter: { deny: ['bash'] } }],
    ['the deepest depth', { maxDepth: Number.MAX_SAFE_INTEGER }],
    ['the longest timeout', { timeoutMs: 2 ** 31 - 1, idleTimeoutMs: 2 ** 31 - 1 }],
  ])('accepts %s', async (_title, extra) => {
    const { refusal, left } = await outcomeOf(extra)

    expect(refusal).toBeUndefined()
    expect(left).toBe(3)
  })
})

describe('the depth limit', () => {
  test.each([
    { optionDepth: undefined, headerDepth: undefined, depth: 0 },
    { optionDepth: 2, headerDepth: undefined, depth: 2 },
    { optionDepth: undefined, headerDepth: 3, depth: 3 },
    { optionDepth: 2, headerDepth: 3, depth: 3 },
    { optionDepth: 4, headerDepth: 3, depth: 4 },
  ])(
    'takes the deeper of options and header: $optionDepth, $headerDepth',
    async ({ optionDepth, headerDepth, depth }) => {
      const ctx = await bootSeam()
      const stub = createStub()
      ctx.subagents.registerProvider(stub)
      const { agent: parent } = ctx.agents.create({
        cwd: '/',
        delegationDepth: headerDepth,
        options: { subagentDepth: optionDepth },
      })

      const run = ctx.subagents.start('stub', { prompt: 'go', parent, maxDepth: depth + 1 })

      expect(depthOf(parent)).toBe(depth)
      expect(stub.last().context.depth).toBe(depth + 1)
      const tooDeep = () => ctx.subagents.start('stub', { prompt: 'go', parent, maxDepth: depth })
      expect(tooDeep).toThrow(SubagentDepthError)
      await run.dispose()
    },
  )

  test('a maxDepth of 0 allows no child, and the refusal says what to do instead', async () => {
    const { refusal, left } = await outcomeOf({ maxDepth: 0 })

    expect(refusal).toMatchObject({
      name: 'SubagentDepthError',
      code: 'DEPTH_EXCEEDED',
      message:
        'a child would be at depth 1, deeper than maxDepth 0 allows: do the work without delegating',
    })
    expect(left).toBe(0)
  })

  test('without a maxDepth there is no limit', async () => {
    const ctx = await bootSeam()
    const stub = createStub()
    ctx.subagents.registerProvider(stub)
    const { agent: parent } = ctx.agents.create({ cwd: '/', delegationDepth: 1000 })

    const run = ctx.subagents.start('stub', { prompt: 'go', parent })

    expect(stub.last().context.depth).toBe(1001)
    await run.dispose()
  })

  test('a parent that is disposed starts nothing, and the signal keeps no listener', async () => {
    const ctx = await bootSeam()
    ctx.subagents.registerProvider(createStub())
    const { agent: parent, dispose } = ctx.agents.create({ cwd: '/' })
    await dispose()
    const { signal } = new AbortController()

    const start = () => ctx.subagents.start('stub', { prompt: 'go', parent, signal })

    expect(start).toThrow(expect.objectContaining({ code: 'AGENT_DISPOSED' }))
    expect(abortListenersOf(signal)).toBe(0)
    expect(ctx.subagents.runs()).toEqual([])
  })
})
