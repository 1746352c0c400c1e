import { HarnessError } from '@deepseek-ai/dsh-llm'
import {
  SubagentDepthError,
  SubagentError,
  type SubagentErrorCode,
  type SubagentRunId,
} from '@deepseek-ai/dsh-subagent'
import type { MockChild } from '@deepseek-ai/dsh-subagent-mock'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import type { ToolProgress } from '@deepseek-ai/dsh-tools'
import { describe, expect, test } from 'vitest'
import { boot, call, textOf } from './helpers.ts'

describe('what the model sees', () => {
  test('is exactly a description and a prompt', async () => {
    const { ctx, parent } = await boot()

    const [schema, ...others] = ctx.tools.schemas(parent)

    expect(others).toEqual([])
    expect(schema?.name).toBe('subagent')
    expect(schema?.parameters).toEqual({
      type: 'object',
      properties: {
        description: { type: 'string', description: expect.any(String) },
        prompt: { type: 'string', minLength: 1, description: expect.any(String) },
      },
      required: ['description', 'prompt'],
    })
  })

  test.each([
    [false, 'sees nothing of this conversation', 'standing on its own'],
    [true, 'already sees this conversation', 'Only what is new'],
  ])('follows inheritsParentContext %s', async (inheritsParentContext, description, prompt) => {
    const { ctx, parent } = await boot({}, { inheritsParentContext })

    const [schema] = ctx.tools.schemas(parent)

    expect(schema?.description).toContain(description)
    expect(JSON.stringify(schema?.parameters)).toContain(prompt)
  })

  test('has the name of the config', async () => {
    const { ctx, parent } = await boot({ toolName: 'ask_child' })

    expect(ctx.tools.schemas(parent).map(({ name }) => name)).toEqual(['ask_child'])
  })
})

describe('the arguments', () => {
  test.each([
    ['an empty prompt', { description: 'x', prompt: '' }],
    ['a blank prompt', { description: 'x', prompt: ' \n' }],
    ['no prompt', { description: 'x' }],
    ['no description', { prompt: 'go' }],
    ['a prompt that is no text', { description: 'x', prompt: 3 }],
  ])('with %s start nothing', async (_, input) => {
    const booted = await boot()

    const result = await call(booted, input)

    expect(result).toMatchObject({ isError: true, code: 'INVALID_ARGUMENTS' })
    expect(booted.mock.requests).toEqual([])
  })

  test('beyond the two have no effect on the request', async () => {
    const booted = await boot()

    await call(booted, { description: 'x', prompt: 'go', cwd: '/etc', provider: 'other' })

    expect(booted.mock.requests[0]).not.toHaveProperty('cwd')
    expect(booted.mock.requests[0]).not.toHaveProperty('provider')
  })

  test.each([
    ['a description', 'look  around\nnow', 'look around now'],
    ['a long description', 'x'.repeat(200), `${'x'.repeat(99)}…`],
    ['a blank description', ' ', undefined],
  ])('give the run %s as its label', async (_, description, label) => {
    const booted = await boot()

    await call(booted, { description, prompt: 'go' })

    expect(booted.mock.requests[0]?.label).toBe(label)
    expect('label' in (booted.mock.requests[0] ?? {})).toBe(label !== undefined)
  })
})

describe('a call', () => {
  test('answers with the text of the child, marked as data with its id', async () => {
    const booted = await boot({}, { script: ({ request }) => `did ${request.prompt}` })

    const result = await call(booted)

    const [id] = booted.mock.disposed
    expect(result.isError).toBe(false)
    expect(textOf(result)).toContain(`[child ${id}: data`)
    expect(textOf(result)).toContain('\ndid go\n')
  })

  test('prints the value of a child that has one', async () => {
    const booted = await boot({}, { script: () => ({ structured: { n: 1 } }) })

    expect(textOf(await call(booted))).toContain('\n{"n":1}\n')
  })

  test('bounds the answer by maxOutputBytes', async () => {
    const booted = await boot({ maxOutputBytes: 1024 }, { script: () => 'é'.repeat(5000) })

    const text = textOf(await call(booted))

    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1024)
    expect(text).toContain('bytes left out')
  })

  test.each<[string, Parameters<typeof boot>[1], string | undefined]>([
    ['completes', { script: () => 'ok' }, undefined],
    ['fails', { script: () => ({ stopReason: 'error' }) }, 'SUBAGENT_ERROR'],
    [
      'ends with a reason of another package',
      { script: () => ({ stopReason: 'lost' as 'error' }) },
      'SUBAGENT_LOST',
    ],
    [
      'has a fault',
      {
        script: () => {
          throw new Error('fault')
        },
      },
      'SUBAGENT_ERROR',
    ],
  ])('disposes the run of a child that %s', async (_, options, code) => {
    const booted = await boot({}, options)

    const result = await call(booted)

    expect(result.code).toBe(code)
    expect(booted.mock.disposed).toHaveLength(1)
    expect(booted.ctx.subagents.runs()).toEqual([])
  })

  test('disposes the run when its own work on the result throws', async () => {
    const structured: Record<string, never> = {}
    Object.assign(structured, { structured })
    const booted = await boot({}, { script: () => ({ structured }) })

    const result = await call(booted)

    expect(result).toMatchObject({ isError: true, code: 'TOOL_FAILED' })
    expect(booted.mock.disposed).toHaveLength(1)
  })

  test('ends with its signal, disposes the run and keeps the partial text', async () => {
    const booted = await boot(
      {},
      {
        script: ({ say }) => {
          say('so far')
          return new Promise(() => {})
        },
      },
    )
    const controller = new AbortController()
    const running = call(booted, undefined, { signal: controller.signal })
    await waitFor('the child', () => booted.mock.alive.size === 1)

    controller.abort('the user left')

    const result = await running
    expect(result).toMatchObject({ isError: true, code: 'SUBAGENT_ABORTED' })
    expect(textOf(result)).toContain('Reason: the user left')
    expect(textOf(result)).toContain('\nso far\n')
    expect(booted.mock.disposed).toHaveLength(1)
    expect(booted.mock.alive.size).toBe(0)
  })

  test('starts nothing when its signal is aborted already', async () => {
    const booted = await boot()

    const result = await call(booted, undefined, { signal: AbortSignal.abort() })

    expect(result).toMatchObject({ isError: true, code: 'ABORTED' })
    expect(booted.mock.requests).toEqual([])
  })

  test('ends a child that takes longer than timeoutMs, and says so', async () => {
    const booted = await boot({ timeoutMs: 20 }, { script: () => new Promise(() => {}) })

    const result = await call(booted)

    expect(result).toMatchObject({ isError: true, code: 'SUBAGENT_ABORTED' })
    expect(textOf(result)).toContain('timeout: the run took longer than 20 ms')
    expect(booted.mock.disposed).toHaveLength(1)
  })

  test('ends a child without a sign of life for idleTimeoutMs, and says so', async () => {
    const booted = await boot({ idleTimeoutMs: 20 }, { script: () => new Promise(() => {}) })

    expect(textOf(await call(booted))).toContain('timeout: no sign of life for 20 ms')
  })

  test('tells of its own child in short lines while it runs, and no longer', async () => {
    const children: MockChild[] = []
    const booted = await boot(
      {},
      {
        script: (child) => {
          children.push(child)
          return new Promise(() => {})
        },
      },
    )
    const progress: [string, ToolProgress][] = []
    booted.ctx.on('tools/progress', ({ call: { callId }, progress: told }) => {
      progress.push([callId, told])
    })
    const controllers = [new AbortController(), new AbortController()] as const
    const first = call(booted, undefined, { callId: 'a', signal: controllers[0].signal })
    const second = call(booted, undefined, { callId: 'b', signal: controllers[1].signal })
    await waitFor('both children', () => children.length === 2)

    const read = { kind: 'tool-start', callId: 'x', name: 'read', title: 'a.ts' } as const
    children[1]?.context.report(read)
    children[0]?.say('thinking\naloud')
    await waitFor('two lines', () => progress.length === 2)
    controllers[0].abort()
    await first
    const { runId } = children[0]?.context ?? {}
    booted.ctx.emit('subagent/update', { ...read, runId: runId as SubagentRunId })

    expect(progress).toEqual([
      ['b', { text: 'read: a.ts' }],
      ['a', { text: 'aloud' }],
    ])
    controllers[1].abort()
    await second
  })
})

describe('a start that is refused', () => {
  test.each<[SubagentErrorCode, RegExp]>([
    ['DEPTH_EXCEEDED', /Do the work yourself/],
    ['NO_PROVIDER', /Do the work yourself/],
    ['UNSUPPORTED_CAPABILITY', /Do the work yourself/],
    ['INVALID_REQUEST', /do the work yourself/],
    ['TOO_MANY_RUNS', /Do the rest of the work yourself/],
  ])('with %s becomes an error that says what to do instead', async (code, advice) => {
    const startError =
      code === 'DEPTH_EXCEEDED'
        ? new SubagentDepthError('too deep')
        : new SubagentError(code, 'not like this')
    const booted = await boot({}, { startError })

    const result = await call(booted)

    expect(result).toMatchObject({ isError: true, code })
    expect(textOf(result)).toMatch(advice)
    expect(textOf(result)).toContain(startError.message)
  })

  test('for another reason keeps its code and its message', async () => {
    const startError = new HarnessError('UNKNOWN_MODEL', 'no model "x"')
    const booted = await boot({}, { startError })

    const result = await call(booted)

    expect(result).toMatchObject({ isError: true, code: 'UNKNOWN_MODEL' })
    expect(textOf(result)).toContain('no model "x"')
  })
})
