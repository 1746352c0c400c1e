import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type ContentBlock, methods } from '@agentclientprotocol/sdk'
import { gate, scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { connect, refusal, startServer } from './helpers.ts'

describe('initialize', () => {
  test('tells version and capabilities truthfully', async () => {
    const { stdin, stdout } = await startServer({ models: [scriptedModel([])] })
    const { agent } = await connect({ stdin, stdout })

    const response = await agent.request(methods.agent.initialize, { protocolVersion: 99 })

    expect(response).toEqual({
      protocolVersion: 1,
      agentInfo: { name: 'dsh', version: '0.1.0' },
      authMethods: [],
      agentCapabilities: {
        loadSession: false,
        promptCapabilities: { image: false, embeddedContext: true },
        sessionCapabilities: { close: {} },
      },
    })
  })

  test('offers images when a model takes them, and stored sessions when there is a store', async () => {
    const seeing = { ...scriptedModel([]), models: [{ name: 'scripted', images: true }] }
    const entries = `- { name: '@deepseek-ai/dsh-session-jsonl', config: { root: sessions } }`
    const server = await startServer({ models: [seeing], entries })
    const { agent } = await connect(server)

    const { agentCapabilities } = await agent.request(methods.agent.initialize, {
      protocolVersion: 1,
    })

    expect(agentCapabilities).toMatchObject({
      loadSession: true,
      promptCapabilities: { image: true },
      sessionCapabilities: { close: {}, resume: {} },
    })
  })
})

describe('session/new', () => {
  test('opens an agent in the folder that the client names', async () => {
    const server = await startServer({ models: [scriptedModel([])] })
    const client = await connect(server)

    const sessionId = await client.open(server.folder)

    const [agent] = server.ctx.agents.list()
    expect(agent).toMatchObject({ id: sessionId, cwd: server.folder })
    expect(agent?.session.header.delegationDepth).toBe(0)
  })

  test.each<[string, string, RegExp]>([
    ['relative', 'somewhere', /not an absolute path/],
    ['missing', '/no/such/folder', /does not exist/],
    ['a file', '/etc/passwd', /is not a folder/],
  ])('refuses a cwd that is %s, and leaves no agent', async (_, cwd, message) => {
    const server = await startServer({ models: [scriptedModel([])] })
    const client = await connect(server)

    const error = await refusal(client.open(cwd))

    expect(error).toMatchObject({ code: -32602, message: expect.stringMatching(message) })
    expect(error.message).toContain(`"${cwd}"`)
    expect(server.ctx.agents.list()).toEqual([])
  })

  test('takes over the depth that a parent in another process says', async () => {
    const server = await startServer({ models: [scriptedModel([])] })
    const client = await connect(server)

    await client.open(server.folder, { 'dsh/depth': 2 })

    const [agent] = server.ctx.agents.list()
    expect(agent?.session.header.delegationDepth).toBe(2)
    expect(agent?.options.subagentDepth).toBe(2)
  })

  test.each([-1, 1.5, '1', {}])('refuses the depth %j', async (depth) => {
    const server = await startServer({ models: [scriptedModel([])] })
    const client = await connect(server)

    const error = await refusal(client.open(server.folder, { 'dsh/depth': depth }))

    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('dsh/depth') })
  })

  test('names in the header the parent in another process, and where it was asked for', async () => {
    const server = await startServer({ models: [scriptedModel([])] })
    const client = await connect(server)
    const origin = { runId: 'run', parentSessionId: 'parent', callId: 'call', provider: 'acp' }

    await client.open(server.folder, { 'dsh/depth': 2, 'dsh/origin': { ...origin, more: 1 } })

    const [agent] = server.ctx.agents.list()
    expect(agent?.session.header).toMatchObject({
      delegationDepth: 2,
      parentSession: 'parent',
      origin: { provider: 'acp', callId: 'call' },
    })
    expect(Object.keys(agent?.session.header.origin ?? {})).toEqual(['provider', 'callId'])
  })

  const origin = { runId: 'run', parentSessionId: 'parent', provider: 'acp' }

  test.each([
    ['that is none', 1, 'spawn', /"dsh\/origin"/],
    ['that is null', 1, null, /"dsh\/origin"/],
    ['without a parent', 1, { ...origin, parentSessionId: '' }, /"dsh\/origin.parentSessionId"/],
    ['without a provider', 1, { ...origin, provider: undefined }, /"dsh\/origin.provider"/],
    ['with a call that is no text', 1, { ...origin, callId: 7 }, /"dsh\/origin.callId"/],
    ['of any length', 1, { ...origin, runId: 'x'.repeat(1025) }, /"dsh\/origin.runId"/],
    ['of a session at the top', 0, origin, /needs a "dsh\/depth" from 1 on/],
  ])('refuses an origin %s', async (_, depth, said, message) => {
    const server = await startServer({ models: [scriptedModel([])] })
    const client = await connect(server)

    const meta = { 'dsh/depth': depth, 'dsh/origin': said }
    const error = await refusal(client.open(server.folder, meta))

    expect(error).toMatchObject({ code: -32602, message: expect.stringMatching(message) })
    expect(server.ctx.agents.list()).toEqual([])
  })

  test('refuses further folders, and warns of MCP servers that it does not connect', async () => {
    const server = await startServer({ models: [scriptedModel([])], expectErrors: /"files"/ })
    const { agent } = await connect(server)
    const files = { name: 'files', command: '/bin/true', args: [], env: [] }

    const error = await refusal(
      agent.request(methods.agent.session.new, {
        cwd: server.folder,
        mcpServers: [],
        additionalDirectories: ['/tmp'],
      }),
    )
    await agent.request(methods.agent.session.new, { cwd: server.folder, mcpServers: [files] })

    expect(error).toMatchObject({ code: -32602 })
    await waitFor('the warning is there', () => server.stderr().includes('not supported'))
  })

  test('says what is missing when there is no model', async () => {
    const server = await startServer()
    const client = await connect(server)

    const error = await refusal(client.open(server.folder))

    expect(error).toMatchObject({ code: -32603, data: { code: 'NO_MODEL' } })
  })
})

describe('session/prompt', () => {
  test('streams the answer as chunks of one message, and tells the tokens', async () => {
    const usage = { inputTokens: 7, outputTokens: 3 }
    const model = scriptedModel([{ reasoning: 'hm', deltas: ['hel', 'lo'], usage }])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)

    const response = await client.prompt(sessionId, 'hi')

    expect(response).toEqual({ stopReason: 'end_turn', usage })
    expect(client.textOf(sessionId)).toBe('hello')
    const chunks = client.updates(sessionId, 'agent_message_chunk')
    expect(new Set(chunks.map(({ messageId }) => messageId)).size).toBe(1)
    expect(chunks[0]?.messageId).toEqual(expect.any(String))
    expect(client.updates(sessionId, 'agent_thought_chunk')).toMatchObject([
      { content: { text: 'hm' } },
    ])
  })

  test('gives the message of each step an id of its own', async () => {
    const model = scriptedModel([{ text: 'first', calls: [{ name: 'nothing' }] }, 'second'])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)

    await client.prompt(sessionId, 'hi')

    const ids = client.updates(sessionId, 'agent_message_chunk').map(({ messageId }) => messageId)
    expect(new Set(ids).size).toBe(2)
  })

  test('counts the tokens of each turn for itself', async () => {
    const usage = { inputTokens: 1, outputTokens: 2 }
    const model = scriptedModel([
      { text: 'a', usage },
      { text: 'b', usage },
    ])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)

    const responses = [await client.prompt(sessionId, '1'), await client.prompt(sessionId, '2')]

    expect(responses).toEqual([
      { stopReason: 'end_turn', usage },
      { stopReason: 'end_turn', usage },
    ])
  })

  test('tells another dsh of tokens as they are used, also of a turn that fails', async () => {
    const usage = { inputTokens: 1, outputTokens: 2 }
    const error = { code: 'MODEL_AUTH', message: 'the key is wrong' }
    const model = scriptedModel([
      { calls: [{ name: 'nothing' }], usage },
      { text: 'so far', usage, finish: 'error', error },
    ])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const other = await client.open(server.folder)
    const sessionId = await client.open(server.folder, { 'dsh/depth': 1 })

    await refusal(client.prompt(sessionId, 'hi'))
    await refusal(client.prompt(other, 'hi'))

    expect(client.updates(sessionId, 'usage_update').map(({ _meta: meta }) => meta)).toEqual([
      { 'dsh/usage': usage },
      { 'dsh/usage': { inputTokens: 2, outputTokens: 4 } },
    ])
    expect(client.updates(other, 'usage_update')).toEqual([])
  })

  test.each([
    ['max-tokens', 'max_tokens'],
    ['refusal', 'refusal'],
  ] as const)('maps the end %s to %s', async (finish, stopReason) => {
    const server = await startServer({ models: [scriptedModel([{ text: 'x', finish }])] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)

    expect(await client.prompt(sessionId, 'hi')).toMatchObject({ stopReason })
  })

  test('maps a turn that has too many steps to max_turn_requests', async () => {
    const model = scriptedModel(() => ({ calls: [{ name: 'nothing' }] }))
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)

    expect(await client.prompt(sessionId, 'hi')).toMatchObject({ stopReason: 'max_turn_requests' })
  })

  test('answers a turn that fails with code and message, and goes on with the next', async () => {
    const error = { code: 'MODEL_AUTH', message: 'the key is wrong' }
    const model = scriptedModel([{ text: 'so far', finish: 'error', error }, 'better'])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)

    const failure = await refusal(client.prompt(sessionId, 'hi'))
    const next = await client.prompt(sessionId, 'again')

    expect(failure).toEqual({
      code: -32603,
      message: 'the key is wrong',
      data: { code: 'MODEL_AUTH' },
    })
    expect(next.stopReason).toBe('end_turn')
    expect(client.textOf(sessionId)).toBe('so farbetter')
  })

  test('refuses a session that is not open, and one that is closed', async () => {
    const server = await startServer({ models: [scriptedModel([])] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    await client.agent.request(methods.agent.session.close, { sessionId })

    const errors = await Promise.all(
      [sessionId, 'nobody'].map((id) => refusal(client.prompt(id, 'hi'))),
    )

    expect(errors).toMatchObject([
      { code: -32002, data: { sessionId } },
      { code: -32002, data: { sessionId: 'nobody' } },
    ])
    expect(server.ctx.agents.list()).toEqual([])
  })

  test('refuses a second prompt while a turn runs', async () => {
    const held = gate()
    const model = scriptedModel([{ text: 'one', until: held.opened }, 'two'])
    const server = await startServer({ models: [model] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)
    const first = client.prompt(sessionId, 'first')
    await waitFor('the turn runs', () => client.textOf(sessionId) === 'one')

    const error = await refusal(client.prompt(sessionId, 'second'))
    held.open()

    expect(error).toMatchObject({ code: -32600, message: expect.stringContaining('is busy') })
    expect(await first).toMatchObject({ stopReason: 'end_turn' })
    expect(model.requests).toHaveLength(1)
  })
})

describe('content of a prompt', () => {
  test('shows links and embedded texts to the model', async () => {
    const model = scriptedModel(['ok'])
    const server = await startServer({ models: [model] })
    const { agent, open } = await connect(server)
    const sessionId = await open(server.folder)
    const file = join(server.folder, 'a b.txt')

    await agent.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [
        { type: 'text', text: 'look' },
        {
          type: 'resource_link',
          name: 'a b.txt',
          uri: pathToFileURL(file).href,
          mimeType: 'text/plain',
          size: 5,
        },
        { type: 'resource_link', name: 'page', uri: 'https://example.org/' },
        { type: 'resource', resource: { uri: 'file:///x.md', text: '# X' } },
      ],
    })

    expect(model.requests[0]?.messages[0]?.content).toEqual([
      { type: 'text', text: 'look' },
      { type: 'text', text: `[resource "a b.txt" (text/plain, 5 bytes): ${file}]` },
      { type: 'text', text: '[resource "page": https://example.org/]' },
      { type: 'text', text: '<resource uri="file:///x.md">\n# X\n</resource>' },
    ])
  })

  test('gives images to a model that takes them', async () => {
    const model = { ...scriptedModel(['ok']), models: [{ name: 'scripted', images: true }] }
    const server = await startServer({ models: [model] })
    const { agent, open } = await connect(server)
    const sessionId = await open(server.folder)
    const image = { mimeType: 'image/png', data: 'iVBORw0KGgo=' }
    const blob = { uri: 'file:///x.png', mimeType: 'image/png', blob: 'AAAA' }

    await agent.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [
        { type: 'image', ...image },
        { type: 'resource', resource: blob },
      ],
    })

    expect(model.requests[0]?.messages[0]?.content).toEqual([
      { type: 'image', mediaType: 'image/png', data: image.data },
      { type: 'image', mediaType: 'image/png', data: 'AAAA' },
    ])
  })

  test.each<[string, ContentBlock[], RegExp]>([
    ['no block', [], /prompt is empty/],
    ['only blanks', [{ type: 'text', text: ' \n' }], /prompt is empty/],
    ['an image', [{ type: 'image', mimeType: 'image/png', data: 'AA==' }], /takes no images/],
    ['audio', [{ type: 'audio', mimeType: 'audio/wav', data: 'AA==' }], /audio is not taken/],
    [
      'binary data',
      [{ type: 'resource', resource: { uri: 'file:///x', blob: 'AA==' } }],
      /"file:\/\/\/x" is neither text nor an image/,
    ],
  ])('refuses %s without asking the model', async (_, prompt, message) => {
    const model = scriptedModel(['never'])
    const server = await startServer({ models: [model] })
    const { agent, open } = await connect(server)
    const sessionId = await open(server.folder)

    const error = await refusal(agent.request(methods.agent.session.prompt, { sessionId, prompt }))

    expect(error).toMatchObject({ code: -32602, message: expect.stringMatching(message) })
    expect(model.requests).toEqual([])
  })
})

describe('session/set_config_option', () => {
  test('offers the registered models, and chooses one', async () => {
    const models = [scriptedModel(['from a'], 'a'), scriptedModel(['from b'], 'b')]
    const server = await startServer({ models, request: { model: 'a' } })
    const client = await connect(server)
    const { sessionId, configOptions } = await client.agent.request(methods.agent.session.new, {
      cwd: server.folder,
      mcpServers: [],
    })

    const changed = await client.agent.request(methods.agent.session.setConfigOption, {
      sessionId,
      configId: 'model',
      value: 'b',
    })
    await client.prompt(sessionId, 'hi')

    const option = {
      type: 'select',
      id: 'model',
      category: 'model',
      name: 'Model',
      options: [
        { value: 'a', name: 'a' },
        { value: 'b', name: 'b' },
      ],
    }
    expect(configOptions).toEqual([{ ...option, currentValue: 'a' }])
    expect(changed.configOptions).toEqual([{ ...option, currentValue: 'b' }])
    expect(client.textOf(sessionId)).toBe('from b')
  })

  test.each<[string, { configId: string; value: string }, RegExp]>([
    ['option', { configId: 'mood', value: 'good' }, /no option "mood" \(offered: model\)/],
    ['model', { configId: 'model', value: 'z' }, /no model "z" \(registered: scripted\)/],
  ])('refuses an unknown %s', async (_, choice, message) => {
    const server = await startServer({ models: [scriptedModel([])] })
    const client = await connect(server)
    const sessionId = await client.open(server.folder)

    const error = await refusal(
      client.agent.request(methods.agent.session.setConfigOption, { sessionId, ...choice }),
    )

    expect(error).toMatchObject({ code: -32602, message: expect.stringMatching(message) })
  })
})
