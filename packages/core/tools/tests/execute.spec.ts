import { LlmError } from '@deepseek-ai/dsh-llm'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import {
  executeCall,
  type Tool,
  type ToolCall,
  type ToolProgress,
  type ToolResult,
  ToolTable,
  type Wrap,
} from '../src/index.ts'
import { createAgent, createCall, createTool, textOf } from './helpers.ts'

function execute(
  tool: Partial<Tool>,
  call: Partial<ToolCall> = {},
  wrap: Wrap = (_, inner) => inner(),
): Promise<ToolResult> {
  const table = new ToolTable()
  table.add(createTool(tool))
  return executeCall(createCall(call), { table, wrap, update: () => {} })
}

/** What JavaScript, unlike TypeScript, lets a tool return. */
const returning =
  (value: unknown): Tool['execute'] =>
  () =>
    Promise.resolve(value as string)

const unreadable: unknown = Object.defineProperty(new Error('x'), 'message', {
  get: () => {
    throw new Error('not for reading')
  },
})

describe('executeCall', () => {
  test('makes a successful result of a text', async () => {
    const result = await execute({})

    expect(result).toEqual({ content: [{ type: 'text', text: 'hello!' }], isError: false })
  })

  test('passes the result of a tool on as it is', async () => {
    const given: ToolResult = { content: [], isError: true, code: 'NOT_FOUND', endsTurn: true }

    const result = await execute({ execute: async () => given })

    expect(result).toBe(given)
  })

  test('gives a tool its parsed arguments and what it may know of the call', async () => {
    const run = vi.fn<Tool['execute']>(async () => 'ok')
    const call = createCall({ input: { word: 'a', unknown: true } })
    const parameters = z.object({ word: z.string(), times: z.number().default(3) })

    await execute({ parameters, execute: run }, call)

    expect(run).toHaveBeenCalledExactlyOnceWith(
      { word: 'a', times: 3 },
      {
        agent: call.agent,
        callId: 'call',
        signal: call.signal,
        update: expect.any(Function) as () => void,
      },
    )
  })

  test('hands on what a tool tells of its progress', async () => {
    const table = new ToolTable()
    const told: [ToolCall, ToolProgress][] = []
    table.add(
      createTool({
        execute: async (_, { update }) => {
          update({ text: 'half', data: 0.5 })
          return 'done'
        },
      }),
    )
    const call = createCall()

    await executeCall(call, {
      table,
      wrap: (_, inner) => inner(),
      update: (...args) => void told.push(args),
    })

    expect(told).toEqual([[call, { text: 'half', data: 0.5 }]])
  })

  test('names the known tools when one is unknown', async () => {
    const result = await execute({}, { name: 'ech' })

    expect(result).toMatchObject({ isError: true, code: 'UNKNOWN_TOOL' })
    expect(textOf(result)).toBe('no tool "ech" (known: echo)')
  })

  test('says of an unknown tool that there are none', async () => {
    const agent = createAgent({ allows: () => false })

    const result = await execute({}, { name: 'ech', agent })

    expect(textOf(result)).toBe('no tool "ech" (known: none)')
  })

  test('repeats no more than the beginning of a name that is long', async () => {
    const name = 'x'.repeat(100_000)

    const result = await execute({}, { name })
    const aborted = await execute({}, { name, signal: AbortSignal.abort() })

    expect(textOf(result)).toBe(`no tool "${'x'.repeat(100)}…" (known: echo)`)
    expect(textOf(aborted)).toBe(`tool "${'x'.repeat(100)}…" was aborted`)
  })

  test('refuses a tool that the agent may not use, and never asks the listeners', async () => {
    const run = vi.fn<Tool['execute']>(async () => 'ran')
    const wrap = vi.fn<Wrap>((_, inner) => inner())
    const agent = createAgent({ allows: () => false })

    const result = await execute({ execute: run }, { agent }, wrap)

    expect(result).toMatchObject({ isError: true, code: 'TOOL_DENIED' })
    expect(textOf(result)).toBe('tool "echo" is not allowed for this agent')
    expect(run).not.toHaveBeenCalled()
    expect(wrap).not.toHaveBeenCalled()
  })

  test.each([
    ['a missing argument', {}, 'at word'],
    ['a wrong type', { word: 1 }, 'at word'],
    ['text that was no JSON', '{"word": ', 'expected a JSON object, nested less'],
  ])('refuses %s without running the tool', async (_, input, problem) => {
    const run = vi.fn<Tool['execute']>(async () => 'ran')

    const result = await execute({ execute: run }, { input })

    expect(result).toMatchObject({ isError: true, code: 'INVALID_ARGUMENTS' })
    expect(textOf(result)).toMatch(/^invalid arguments for tool "echo":\n/)
    expect(textOf(result)).toContain(problem)
    expect(run).not.toHaveBeenCalled()
  })

  test.each([
    ['an error', new Error('disk full'), 'TOOL_FAILED', 'disk full'],
    [
      'a typed error, whose code it keeps',
      new LlmError('MODEL_AUTH', 'no key'),
      'MODEL_AUTH',
      'no key',
    ],
    ['a text', 'no luck', 'TOOL_FAILED', 'no luck'],
    [
      'an object without a prototype',
      Object.create(null),
      'TOOL_FAILED',
      '[Object: null prototype]',
    ],
    [
      'an error whose code is no text',
      Object.assign(new LlmError('MODEL_AUTH', 'no key'), { code: () => 1 }),
      'TOOL_FAILED',
      'no key',
    ],
    ['an error that cannot be read', unreadable, 'TOOL_FAILED', 'an error that cannot be read'],
  ])('makes a result of a tool that throws %s', async (_, thrown, code, message) => {
    const rejects = await execute({ execute: () => Promise.reject(thrown) })
    const throws = await execute({
      execute: () => {
        throw thrown
      },
    })

    expect(rejects).toMatchObject({ isError: true, code })
    expect(textOf(rejects)).toContain(`tool "echo" failed: ${message}`)
    expect(throws).toEqual(rejects)
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a number', 7],
    ['an object without content', { isError: false }],
    ['content that is no list', { content: 'text', isError: false }],
    ['a text that is absent', { content: [{ type: 'text', text: undefined }], isError: false }],
    ['a list of texts', { content: ['text'], isError: false }],
    ['a list with nothing in it', { content: [null], isError: false }],
    ['an unknown kind of block', { content: [{ type: 'html', text: 'x' }], isError: false }],
    ['an image without its data', { content: [{ type: 'image', data: 'x' }], isError: false }],
    ['content that may be an error or not', { content: [{ type: 'text', text: 'x' }] }],
  ])('makes an error of a tool that returns %s', async (_, value) => {
    const result = await execute({ execute: returning(value) })

    expect(result).toMatchObject({ isError: true, code: 'INVALID_RESULT' })
    expect(textOf(result)).toMatch(
      /^tool "echo" gave no result: it must return a text or { content, isError }/,
    )
  })

  test('does not begin when the signal is aborted already', async () => {
    const run = vi.fn<Tool['execute']>(async () => 'ran')
    const wrap = vi.fn<Wrap>((_, inner) => inner())

    const result = await execute({ execute: run }, { signal: AbortSignal.abort() }, wrap)

    expect(result).toMatchObject({ isError: true, code: 'ABORTED' })
    expect(textOf(result)).toBe('tool "echo" was aborted')
    expect(run).not.toHaveBeenCalled()
    expect(wrap).not.toHaveBeenCalled()
  })

  test('does not run a tool that a listener held back until after the abort', async () => {
    const controller = new AbortController()
    const run = vi.fn<Tool['execute']>(async () => 'ran')

    const result = await execute({ execute: run }, { signal: controller.signal }, (_, inner) => {
      controller.abort()
      return inner()
    })

    expect(result).toMatchObject({ code: 'ABORTED' })
    expect(run).not.toHaveBeenCalled()
  })

  test('says aborted, not failed, of a tool that throws after the abort', async () => {
    const controller = new AbortController()

    const result = await execute(
      {
        execute: async () => {
          controller.abort()
          throw new Error('fetch was aborted')
        },
      },
      { signal: controller.signal },
    )

    expect(result).toMatchObject({ isError: true, code: 'ABORTED' })
  })

  test('keeps the result of a tool that completes in spite of the abort', async () => {
    const controller = new AbortController()

    const result = await execute(
      {
        execute: async () => {
          controller.abort()
          return 'the file is written'
        },
      },
      { signal: controller.signal },
    )

    expect(textOf(result)).toBe('the file is written')
  })

  test.each<[string, Wrap, string]>([
    ['throws', () => Promise.reject(new Error('broken')), 'TOOL_FAILED'],
    ['forgets to return', async () => undefined as unknown as ToolResult, 'INVALID_RESULT'],
  ])('makes an error of a listener that %s', async (_, wrap, code) => {
    const result = await execute({}, {}, wrap)

    expect(result).toMatchObject({ isError: true, code })
  })

  test('makes an error of a scope that throws', async () => {
    const agent = createAgent({
      allows: () => {
        throw new Error('broken rule')
      },
    })

    const result = await execute({}, { agent })

    expect(result).toMatchObject({ isError: true, code: 'TOOL_FAILED' })
  })
})
