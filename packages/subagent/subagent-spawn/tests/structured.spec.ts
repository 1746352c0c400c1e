import type { JsonObject, JsonValue } from '@deepseek-ai/dsh-llm'
import type { ScriptedReply } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import {
  type Bench,
  createBench,
  isAnswered,
  registerTool,
  textOf,
  toolResultsOf,
} from './helpers.ts'

const schema: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    file: { type: 'string' },
    severity: { enum: ['low', 'high'] },
    spots: {
      type: 'array',
      items: {
        type: 'object',
        properties: { line: { type: 'integer', minimum: 1 } },
        required: ['line'],
      },
    },
  },
  required: ['file', 'severity'],
  additionalProperties: false,
}
const sound = { file: 'a.ts', severity: 'low', spots: [{ line: 3 }] }

function handIn(input: JsonValue, text = ''): ScriptedReply {
  return { text, calls: [{ name: 'structured_output', input }] }
}

/** A child that hands in one value after another, and then only talks. */
async function createHandIn(...values: JsonValue[]): Promise<Bench> {
  return createBench({
    model: (_request, index) => {
      const value = values[index]
      return value === undefined ? 'I am done' : handIn(value)
    },
  })
}

describe('outputSchema', () => {
  test('gives the value that fits the first time, and the turn ends with it', async () => {
    const { ctx, model, start } = await createHandIn(sound)
    const run = start({ outputSchema: schema })
    const session = ctx.sessions.get(run.id)

    const result = await run.result

    expect(result).toMatchObject({ stopReason: 'completed', structured: sound })
    expect(result.diagnostic).toBeUndefined()
    expect(model.requests).toHaveLength(1)
    expect(session && toolResultsOf(session)).toEqual(['accepted'])
    await run.dispose()
  })

  test('gives a value that nobody can change, without half a surrogate pair', async () => {
    const { delegate } = await createHandIn({ ...sound, file: 'a\uD83D.ts' })

    const { structured } = await delegate({ outputSchema: schema })

    expect(structured).toEqual({ ...sound, file: 'a\uFFFD.ts' })
    expect(Object.isFrozen((structured as unknown as typeof sound).spots[0])).toBe(true)
  })

  test('tells the child how to answer, in the prompt and by a tool that has the schema', async () => {
    const { model, delegate } = await createHandIn(sound)

    await delegate({ prompt: 'find bugs', outputSchema: schema })

    const [request] = model.requests
    expect(request?.messages[0]?.content).toEqual([
      { type: 'text', text: 'find bugs' },
      { type: 'text', text: expect.stringContaining('structured_output') as string },
    ])
    expect(request?.tools).toEqual([
      {
        name: 'structured_output',
        description: expect.any(String) as string,
        parameters: schema,
      },
    ])
  })

  test('gives a value that does not fit back with all that is wrong, and takes a better one', async () => {
    const { ctx, model, start } = await createHandIn({ severity: 'medium', extra: 1 }, sound)
    const run = start({ outputSchema: schema })
    const session = ctx.sessions.get(run.id)

    const result = await run.result

    expect(result).toMatchObject({ stopReason: 'completed', structured: sound })
    expect(model.requests).toHaveLength(2)
    const [answer] = (session && toolResultsOf(session)) ?? []
    expect(answer).toContain("must have required property 'file'")
    expect(answer).toContain('must NOT have additional properties')
    expect(answer).toContain('value/severity must be equal to one of the allowed values')
    expect(answer).toContain('attempts left: 2')
    await run.dispose()
  })

  test('bounds what it says of a value that is wrong in every place', async () => {
    const spots = Array.from({ length: 20_000 }, () => ({ line: 'x' }))
    const { ctx, start } = await createHandIn({ ...sound, spots }, sound)
    const run = start({ outputSchema: schema })
    const session = ctx.sessions.get(run.id)

    await run.result

    const [answer = ''] = (session && toolResultsOf(session)) ?? []
    expect(answer).toContain('value/spots/0/line must be integer')
    expect(answer).toContain('attempts left: 2')
    expect(answer.length).toBeLessThan(1200)
    await run.dispose()
  })

  test.each<[string, JsonValue, string]>([
    ['a missing property', { file: 'a.ts' }, "must have required property 'severity'"],
    ['a value that is not in the enum', { ...sound, severity: 'x' }, 'value/severity must be'],
    ['one property too many', { ...sound, more: 1 }, 'must NOT have additional properties'],
    [
      'a wrong type deep inside',
      { ...sound, spots: [{ line: 'x' }] },
      'value/spots/0/line must be integer',
    ],
    [
      'a missing property deep inside',
      { ...sound, spots: [{}] },
      "value/spots/0 must have required property 'line'",
    ],
    ['a list', [sound], 'value must be object'],
    ['text that is no JSON', '{"file": "a.ts', 'value must be object'],
    ['null', null, 'value must be object'],
  ])('ends as an error after three times %s', async (_title, value, problem) => {
    const { model, delegate } = await createHandIn(value, value, value, sound)

    const result = await delegate({ outputSchema: schema })

    expect(result.stopReason).toBe('error')
    expect(result).not.toHaveProperty('structured')
    expect(result.diagnostic).toMatch(
      /^the child gave no value that fits the schema in 3 attempts: /,
    )
    expect(result.diagnostic).toContain(problem)
    expect(model.requests).toHaveLength(3)
  })

  test('ends as an error with the last message when nothing was handed in', async () => {
    const { delegate } = await createBench({ model: ['the file is a.ts'] })

    const result = await delegate({ outputSchema: schema })

    expect(result).toMatchObject({
      stopReason: 'error',
      diagnostic: 'the child finished without calling structured_output',
    })
    expect(textOf(result)).toBe('the file is a.ts')
  })

  test('names the last problem when the child gives up in between', async () => {
    const { delegate } = await createHandIn({ file: 1, severity: 'low' })

    const result = await delegate({ outputSchema: schema })

    expect(result).toMatchObject({ stopReason: 'error' })
    expect(result.diagnostic).toBe(
      'the child gave no value that fits the schema in 1 attempts: value/file must be string',
    )
    expect(textOf(result)).toBe('I am done')
  })

  test.each<[string, ScriptedReply, object]>([
    ['is cut short', { text: 'half', finish: 'max-tokens' }, { stopReason: 'max-tokens' }],
    ['refuses', { text: 'no', finish: 'refusal' }, { stopReason: 'refusal' }],
    [
      'has a model that fails',
      { text: 'half', finish: 'error', error: { code: 'X', message: 'broken' } },
      { stopReason: 'error', diagnostic: 'broken' },
    ],
  ])('says how a child ended that %s', async (_title, reply, expected) => {
    const { delegate } = await createBench({ model: [reply] })

    const result = await delegate({ outputSchema: schema })

    expect(result).toMatchObject(expected)
    expect(textOf(result)).toBe(reply.text)
  })

  test('takes a schema of whatever draft it names', async () => {
    const { delegate } = await createHandIn(sound)
    const $schema = 'http://json-schema.org/draft-07/schema#'

    const result = await delegate({ outputSchema: { ...schema, $schema } })

    expect(result.structured).toEqual(sound)
  })

  test('runs nothing that is called after the value in the same message', async () => {
    const ran: string[] = []
    const { ctx, start } = await createBench({
      model: [
        {
          text: 'here you are',
          calls: [
            { name: 'before', callId: 'a' },
            { name: 'structured_output', callId: 'b', input: sound },
            { name: 'after', callId: 'c' },
            { name: 'structured_output', callId: 'd', input: { ...sound, file: 'b.ts' } },
          ],
        },
      ],
    })
    for (const name of ['before', 'after']) {
      registerTool(ctx, name, async () => `${ran.push(name)}`)
    }
    const run = start({ outputSchema: schema })
    const session = ctx.sessions.get(run.id)

    const result = await run.result

    expect(ran).toEqual(['before'])
    expect(result).toMatchObject({ stopReason: 'completed', structured: sound })
    expect(textOf(result)).toBe('here you are')
    expect(session && toolResultsOf(session)).toEqual([
      '1',
      'accepted',
      expect.stringMatching(/^not executed/),
      expect.stringMatching(/^not executed/),
    ])
    await run.dispose()
  })

  test('caps the attempts also when input keeps the turn going', async () => {
    const { ctx, model, start } = await createBench({ model: () => handIn({}) })
    let steers = 0
    ctx.on('session/event', ({ event }) => {
      if (event.type === 'tool/result' && ++steers < 6) void run.sendMessage?.('try again')
    })
    const run = start({ outputSchema: schema, agentOptions: { maxSteps: 20 } })

    const result = await run.result

    expect(result.stopReason).toBe('error')
    expect(model.requests.length).toBeLessThanOrEqual(6)
    await run.dispose()
  })

  test('gives no value when the child is cancelled', async () => {
    const { ctx, start } = await createHandIn(sound)
    ctx.on('session/event', ({ event }) => {
      if (event.type === 'tool/result') run.cancel()
    })
    const run = start({ outputSchema: schema })

    const result = await run.result

    expect(result.stopReason).toBe('aborted')
    expect(result).not.toHaveProperty('structured')
    await run.dispose()
  })

  test.each([{ allow: [] }, { allow: ['read'] }, { deny: ['read'] }])(
    'keeps its tool under the filter %j',
    async (toolFilter) => {
      const { ctx, model, delegate } = await createHandIn(sound)
      registerTool(ctx, 'read')

      const result = await delegate({ outputSchema: schema, toolFilter })

      expect(result.structured).toEqual(sound)
      expect(model.requests[0]?.tools.map(({ name }) => name)).toContain('structured_output')
    },
  )

  test('has a tool that neither the parent nor a grandchild sees', async () => {
    const { ctx, model, parent, start } = await createBench()
    const run = start({ outputSchema: schema })
    const child = ctx.agents.get(run.id)
    if (child === undefined) throw new Error('there is no child')

    const nested = ctx.subagents.start('spawn', { prompt: 'go', parent: child })
    await nested.result
    await run.result
    await parent.send('go')

    const seenBy = (id: string): string[] | undefined =>
      model.requests.find(({ sessionId }) => sessionId === id)?.tools.map(({ name }) => name)
    expect(seenBy(run.id)).toEqual(['structured_output'])
    expect(seenBy(nested.id)).toEqual([])
    expect(seenBy(parent.id)).toEqual([])
    await nested.dispose()
    await run.dispose()
  })

  test('hides a registered tool of the same name', async () => {
    const ran: string[] = []
    const { ctx, delegate, model } = await createHandIn(sound)
    registerTool(ctx, 'structured_output', async () => `${ran.push('wrong one')}`)

    const result = await delegate({ outputSchema: schema })

    expect(result.structured).toEqual(sound)
    expect(ran).toEqual([])
    expect(model.requests[0]?.tools).toHaveLength(1)
  })

  test('belongs to one child: two at once do not share attempts or values', async () => {
    const { start } = await createBench({
      model: ({ messages, sessionId }) => {
        const [block] = messages[0]?.content ?? []
        const file = block?.type === 'text' ? block.text : sessionId
        return isAnswered({ messages } as never) ? 'done' : handIn({ file, severity: 'low' })
      },
    })

    const runs = ['a', 'b', 'c'].map((prompt) => start({ prompt, outputSchema: schema }))
    const results = await Promise.all(runs.map(async ({ result }) => result))

    expect(results.map(({ structured }) => structured)).toEqual(
      ['a', 'b', 'c'].map((file) => ({ file, severity: 'low' })),
    )
    await Promise.all(runs.map((run) => run.dispose()))
  })

  test.each<[string, JsonObject, RegExp]>([
    ['of a list', { type: 'array' }, /must have type "object", not "array"/],
    ['without a type', { properties: {} }, /must have type "object", not undefined/],
    ['of several types', { type: ['object', 'null'] }, /not \["object","null"\]/],
    [
      'with an unknown type',
      { type: 'object', properties: { a: { type: 'strin' } } },
      /schema is invalid/,
    ],
    [
      'with a broken pattern',
      { type: 'object', properties: { a: { pattern: '(' } } },
      /regular expression/i,
    ],
    [
      'with a reference to nowhere',
      { type: 'object', properties: { a: { $ref: '#/$defs/x' } } },
      /can't resolve reference/,
    ],
  ])('%s is refused before there is a child', async (_title, outputSchema, message) => {
    const { ctx, parent, start } = await createBench()

    const begin = () => start({ outputSchema })

    expect(begin).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        message: expect.stringMatching(message) as string,
      }),
    )
    expect(ctx.agents.list()).toEqual([parent])
    expect(ctx.sessions.list()).toEqual([parent.session])
  })
})
