import type { SubagentResult } from '@deepseek-ai/dsh-subagent'
import { describe, expect, test } from 'vitest'
import { createBench, delegateOnce, fixture, textOf } from './helpers.ts'

interface Told {
  readonly initialize: object
  readonly session: object
  readonly prompt: object
}

function toldBy(result: SubagentResult): Told {
  return JSON.parse(textOf(result)) as Told
}

describe('a conversation', () => {
  test('offers nothing, opens one session in the workspace, and sends one text', async () => {
    const { delegate, parent } = await createBench(fixture('tells'))

    const told = toldBy(await delegate('my task'))

    expect(told).toMatchObject({
      initialize: {
        protocolVersion: 1,
        clientCapabilities: {},
        clientInfo: { name: 'dsh', version: '0.1.0' },
      },
      session: { cwd: parent.cwd, mcpServers: [], _meta: { 'dsh/depth': 1 } },
      prompt: [{ type: 'text', text: 'my task' }],
    })
  })

  test('tells the agent how deep it is, from the depth of its parent', async () => {
    const { ctx, delegate } = await createBench(fixture('tells'))
    const { agent: parent } = ctx.agents.create({ cwd: '/', delegationDepth: 4 })

    const told = toldBy(await delegate('go', { parent }))

    expect(told.session).toMatchObject({ _meta: { 'dsh/depth': 5 } })
  })

  test('tells the agent which call of whom it answers', async () => {
    const { ctx, start, parent } = await createBench(fixture('tells'))
    const runs = [start('go', { callId: 'call-7' }), start('go')]
    const ids = ctx.subagents.runs().map(({ runId }) => runId)

    const results = await Promise.all(runs.map(({ result }) => result))
    await Promise.all(runs.map((run) => run.dispose()))

    const session = { cwd: parent.cwd, mcpServers: [] }
    const origin = { parentSessionId: parent.id, provider: 'acp' }
    expect(results.map((result) => toldBy(result).session)).toEqual([
      {
        ...session,
        _meta: { 'dsh/depth': 1, 'dsh/origin': { runId: ids[0], callId: 'call-7', ...origin } },
      },
      { ...session, _meta: { 'dsh/depth': 1, 'dsh/origin': { runId: ids[1], ...origin } } },
    ])
  })

  test.each([
    ['end_turn', { stopReason: 'completed' }],
    ['max_tokens', { stopReason: 'max-tokens' }],
    ['refusal', { stopReason: 'refusal' }],
    [
      'cancelled',
      {
        stopReason: 'aborted',
        diagnostic:
          'the agent cancelled its turn by itself, which usually means that a permission was refused',
      },
    ],
    [
      'max_turn_requests',
      {
        stopReason: 'error',
        diagnostic: 'the agent reached its limit of model requests in one turn',
      },
    ],
    [
      'bored',
      {
        stopReason: 'error',
        diagnostic: 'the agent ended its turn with the unknown stop reason "bored"',
      },
    ],
  ])('that ends with %s keeps the text', async (stopReason, expected) => {
    const answer = JSON.stringify({ stopReason })

    const result = await delegateOnce(fixture('answers', 'session/prompt', answer, 'so far'))

    expect(result).toEqual({ output: [{ type: 'text', text: 'so far' }], ...expected })
  })

  test('that ends without a text says so', async () => {
    const answer = JSON.stringify({ stopReason: 'end_turn' })

    const result = await delegateOnce(fixture('answers', 'session/prompt', answer))

    expect(result).toEqual({
      output: [],
      stopReason: 'completed',
      diagnostic: 'the agent ended its turn without a text',
    })
  })

  test('names the request whose answer has no shape that it knows', async () => {
    const { stopReason, diagnostic } = await delegateOnce(fixture('answers', 'initialize', '[]'))

    expect(stopReason).toBe('error')
    expect(diagnostic).toContain('answered initialize')
  })

  test.each([[2], ['1'], [null]])('refuses protocol version %j', async (protocolVersion) => {
    const answer = JSON.stringify({ protocolVersion })

    const { stopReason, diagnostic } = await delegateOnce(fixture('answers', 'initialize', answer))

    expect(stopReason).toBe('error')
    expect(diagnostic).toBe(
      `the agent speaks version ${JSON.stringify(protocolVersion)} of the Agent Client Protocol, not 1: another release of it may`,
    )
  })

  test.each([
    [
      'initialize',
      ': a command that speaks the Agent Client Protocol on stdin and stdout is expected',
    ],
    ['session/new', ''],
    ['session/prompt', ''],
  ])('that fails at %s gives the error of the agent, and its details', async (method, hint) => {
    const error = { code: -32_603, message: 'Internal error', data: { details: 'no model' } }

    const result = await delegateOnce(fixture('fails', method, JSON.stringify(error)))

    expect(result).toEqual({
      output: [],
      stopReason: 'error',
      diagnostic: `the agent failed at ${method}: Internal error ({"details":"no model"})${hint}`,
    })
  })

  test('that fails in its turn keeps the text', async () => {
    const error = JSON.stringify({ code: 429, message: 'rate limited', data: 'try later' })

    const result = await delegateOnce(fixture('fails', 'session/prompt', error, 'so far'))

    expect(result).toEqual({
      output: [{ type: 'text', text: 'so far' }],
      stopReason: 'error',
      diagnostic: 'the agent failed at session/prompt: rate limited (try later)',
    })
  })
})

describe('authMethod', () => {
  test.each([
    ['session/new', ['1', '0']],
    ['session/prompt', ['0', '1']],
  ])('is tried once when %s wants it', async (_method, counts) => {
    const result = await delegateOnce({ ...fixture('auth', ...counts), authMethod: 'key' })

    expect(result).toMatchObject({ stopReason: 'completed', output: [{ text: 'key' }] })
  })

  test.each([undefined, 'password'])(
    'is asked for, with those that the agent offers, when it is %s',
    async (authMethod) => {
      const result = await delegateOnce({
        ...fixture('auth', '1', '0'),
        ...(authMethod !== undefined && { authMethod }),
      })

      expect(result).toEqual({
        output: [],
        stopReason: 'error',
        diagnostic:
          'the agent wants to be authenticated: set authMethod (offered: key, browser), or give what it needs in env',
      })
    },
  )

  test.each([
    ['session/new', ['2', '0'], 'the agent failed at session/new: Authentication required'],
    ['session/prompt', ['1', '2'], 'the agent wants to be authenticated: set authMethod'],
  ])('is not tried again when %s is not content', async (_method, counts, reason) => {
    const config = { ...fixture('auth', ...counts), authMethod: 'key' }

    const { diagnostic } = await delegateOnce(config)

    expect(diagnostic?.slice(0, reason.length)).toBe(reason)
  })

  test('cannot help with an agent that offers none', async () => {
    const error = JSON.stringify({ code: -32_000, message: 'log in' })
    const config = { ...fixture('fails', 'session/new', error), authMethod: 'key' }

    const { diagnostic } = await delegateOnce(config)

    expect(diagnostic).toMatch(/^the agent wants to be authenticated: .*\(offered: none\)/)
  })
})

describe('model and mode', () => {
  test.each([
    [{ mode: 'code' }, [['mode', 'code']]],
    [{ mode: 'plan' }, [['mode', 'plan']]],
    [{ model: 'small' }, [['which', 'small']]],
    [
      { model: 'large', mode: 'ask' },
      [
        ['mode', 'ask'],
        ['which', 'large'],
      ],
    ],
    [{}, []],
  ])('are set as %j before the prompt', async (config, expected) => {
    const result = await delegateOnce({ ...fixture('settings'), ...config })

    expect(JSON.parse(textOf(result))).toEqual(expected)
  })

  test.each([
    [{ model: 'huge' }, 'the agent has no model "huge" (offered: small, large)'],
    [{ mode: 'yolo' }, 'the agent has no mode "yolo" (offered: ask, code, plan)'],
  ])('are refused as %j, with what is offered', async (config, diagnostic) => {
    const result = await delegateOnce({ ...fixture('settings'), ...config })

    expect(result).toEqual({ output: [], stopReason: 'error', diagnostic })
  })

  test.each([{}, { modes: null, configOptions: null }, { modes: 'all', configOptions: [7] }])(
    'are refused by an agent whose session is %j',
    async (session) => {
      const answer = JSON.stringify({ sessionId: 's', ...session })
      const agent = fixture('answers', 'session/new', answer)

      const mode = await delegateOnce({ ...agent, mode: 'ask' })
      const model = await delegateOnce({ ...agent, model: 'small' })

      expect(mode.diagnostic).toBe('the agent has no mode "ask" (offered: none)')
      expect(model.diagnostic).toBe('the agent has no model "small" (offered: none)')
    },
  )
})
