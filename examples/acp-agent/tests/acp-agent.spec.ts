import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { methods } from '@agentclientprotocol/sdk'
import { type ModelServer, startModelServer, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { connect, copyOfExample, isAlive, start } from './helpers.ts'

const { session } = methods.agent

describe('cordis.demo.yml', () => {
  test('does its task for a client, asks before it writes, and ends with its stdin', async () => {
    const copy = await copyOfExample()
    const server = start(copy, 'cordis.demo.yml')
    const client = await connect(server, 'allow_once')
    const sessionId = await client.open(copy.project)

    const stopReason = await client.prompt(
      sessionId,
      'Document priceTag of src/price.js in docs/price.md. Change nothing else.',
    )
    server.stdin.end()

    expect(stopReason).toBe('end_turn')
    expect(client.textOf(sessionId)).toContain('I wrote docs/price.md.')
    expect(client.questions.map(({ toolCall }) => toolCall.title)).toEqual(['write docs/price.md'])
    expect(await readFile(join(copy.project, 'docs/price.md'), 'utf8')).toContain(
      'The price tag of',
    )
    expect(await server.ended).toBe(0)
    expect(server.stderr()).toBe('')
  })

  test('writes nothing when the client says no', async () => {
    const copy = await copyOfExample()
    const server = start(copy, 'cordis.demo.yml')
    const client = await connect(server, 'reject_once')
    const sessionId = await client.open(copy.project)

    const stopReason = await client.prompt(
      sessionId,
      'Document priceTag of src/price.js in docs/price.md.',
    )

    expect(stopReason).toBe('end_turn')
    expect(client.textOf(sessionId)).toContain('I did not write it: the user does not allow')
    await expect(readFile(join(copy.project, 'docs/price.md'))).rejects.toThrow('ENOENT')
  })
})

describe('DSH_CLIENT_WORKSPACE', () => {
  test('lets the agent read what is not saved, and write through the editor', async () => {
    const copy = await copyOfExample()
    const server = start(copy, 'cordis.demo.yml', { DSH_CLIENT_WORKSPACE: '1' })
    const written = join(copy.project, 'docs/price.md')
    const unsaved = '/** Words that are not saved. */\nexport const priceTag = 1\n'
    const buffers = new Map([[join(copy.project, 'src/price.js'), unsaved]])
    const client = await connect(server, 'allow_once', buffers)
    const sessionId = await client.open(copy.project)

    await client.prompt(sessionId, 'Document priceTag of src/price.js in docs/price.md.')
    server.stdin.end()

    expect(client.textOf(sessionId)).toContain('I wrote docs/price.md.')
    expect(buffers.get(written)).toContain('Words that are not saved.')
    await expect(readFile(written)).rejects.toThrow('ENOENT')
    expect(await server.ended).toBe(0)
    expect(server.stderr()).toBe('')
  })
})

describe('cordis.yml', () => {
  test('without a key says what to set, on stderr alone, and exits 2', async () => {
    const server = start(await copyOfExample(), 'cordis.yml')

    expect(await server.ended).toBe(2)
    expect(server.stderr()).toContain('set DEEPSEEK_API_KEY')
    expect(server.lines()).toEqual([])
  })

  test('keeps sessions, so that another process can load them', async () => {
    const copy = await copyOfExample()
    const model = await startModelServer(({ messages }) => `so far ${messages.length} messages`)
    const first = start(copy, 'cordis.yml', pointedAt(model))
    const client = await connect(first, 'allow_once')
    const sessionId = await client.open(copy.project)
    await client.prompt(sessionId, 'hello')
    first.stdin.end()
    await first.ended
    const second = start(copy, 'cordis.yml', pointedAt(model))
    const other = await connect(second, 'allow_once')

    await other.agent.request(session.load, { sessionId, cwd: copy.project, mcpServers: [] })
    const before = other.textOf(sessionId)
    await other.prompt(sessionId, 'again')

    const said = other.updates(sessionId, 'user_message_chunk')
    expect(said).toMatchObject([{ content: { text: 'hello' } }])
    expect(before).toBe(client.textOf(sessionId))
    expect(model.requests.at(-1)?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
    ])
  })

  test('delegates to a child, whose command is asked for too', async () => {
    const copy = await copyOfExample()
    const model = await startModelServer(({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool') return `it said: ${last.text}`
      if (last?.text === 'delegate') {
        const input = { description: 'say it', prompt: 'run it' }
        return { calls: [{ name: 'subagent', input }] }
      }
      return { calls: [{ name: 'bash', input: { command: 'echo hi there' } }] }
    })
    const server = start(copy, 'cordis.yml', pointedAt(model))
    const client = await connect(server, 'allow_once')
    const sessionId = await client.open(copy.project)

    await client.prompt(sessionId, 'delegate')

    expect(client.questions.map(({ toolCall }) => toolCall.title)).toEqual(['echo hi there'])
    expect(client.textOf(sessionId)).toContain('hi there')
    const calls = client.updates(sessionId, 'tool_call')
    expect(calls.map(({ title }) => title)).toEqual(['subagent say it', 'echo hi there'])
  })

  test.each<[string, 'end' | 'SIGTERM', number]>([
    ['its stdin ends', 'end', 0],
    ['it gets SIGTERM', 'SIGTERM', 143],
  ])('when %s in the middle of a command, nothing is left', async (_, how, code) => {
    const copy = await copyOfExample()
    const command = 'trap "" TERM; sleep 300 & echo $! > sleeper; echo $$ > shell; wait'
    const model = await startModelServer([{ calls: [{ name: 'bash', input: { command } }] }])
    const server = start(copy, 'cordis.yml', pointedAt(model))
    const client = await connect(server, 'allow_once')
    const sessionId = await client.open(copy.project)
    client.prompt(sessionId, 'wait').catch(() => {})
    const pids = await pidsIn(copy.project, ['sleeper', 'shell'])
    const startedAt = performance.now()

    if (how === 'end') server.stdin.end()
    else server.child.kill(how)

    expect(await server.ended).toBe(code)
    expect(performance.now() - startedAt).toBeLessThan(15_000)
    expect(pids.filter(isAlive)).toEqual([])
  })

  test('cancels one of two sessions whose commands run, and leaves the other to its end', async () => {
    const copy = await copyOfExample()
    const model = await startModelServer(({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool') return last.text
      const command = `echo $$ > ${last?.text}; until [ -e go ]; do sleep 0.05; done; echo went`
      return { calls: [{ name: 'bash', input: { command } }] }
    })
    const server = start(copy, 'cordis.yml', pointedAt(model))
    const client = await connect(server, 'allow_always')
    const ids = [await client.open(copy.project), await client.open(copy.project)] as const
    const turns = ids.map((sessionId, index) => client.prompt(sessionId, `shell-${index}`))
    const pids = await pidsIn(copy.project, ['shell-0', 'shell-1'])

    await client.agent.notify(session.cancel, { sessionId: ids[0] })
    const first = await turns[0]
    const alive = pids.map(isAlive)
    await writeFile(join(copy.project, 'go'), '')

    expect(first).toBe('cancelled')
    expect(alive).toEqual([false, true])
    expect(await turns[1]).toBe('end_turn')
    expect(client.textOf(ids[1])).toContain('went')
  })

  test('answers what is no protocol with errors, and nothing else goes to stdout', async () => {
    const copy = await copyOfExample()
    const server = start(copy, 'cordis.demo.yml')
    const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } }

    server.stdin.write(`hello?\n${JSON.stringify(hello)}\n`)
    await waitFor('the handshake is over', () => server.lines().length === 2)
    const big = 'y'.repeat(5_000_000)
    for (const line of [
      '{"jsonrpc":"2.0","id":2,"method":"session/dance"}',
      '{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":1}}',
      '{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}',
      '{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}',
      `{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/","mcpServers":[],"_meta":{"x":"${big}"}}}`,
    ]) {
      server.stdin.write(`${line}\n`)
    }
    await waitFor('all is answered', () => server.lines().length === 6)
    server.stdin.end()

    const answers = server.lines().map((line) => JSON.parse(line) as Record<string, unknown>)
    const byId = new Map(answers.map((answer) => [answer['id'], answer]))
    expect(byId.get(null)).toMatchObject({ error: { code: -32700 } })
    expect(byId.get(1)).toMatchObject({ result: { protocolVersion: 1 } })
    expect(byId.get(2)).toMatchObject({ error: { code: -32601 } })
    expect(byId.get(3)).toMatchObject({ error: { code: -32602 } })
    expect(byId.get(4)).toMatchObject({ error: { code: -32002 } })
    expect(byId.get(5)).toMatchObject({ result: { sessionId: expect.any(String) } })
    expect(await server.ended).toBe(0)
  })
})

function pointedAt({ baseURL }: ModelServer): Record<string, string> {
  return { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: 'key', OPENAI_MODEL: 'local' }
}

/** The pids that a command wrote into files, once they are there. */
async function pidsIn(folder: string, names: readonly string[]): Promise<number[]> {
  const read = (): Promise<number[]> =>
    Promise.all(
      names.map(async (name) => Number(await readFile(join(folder, name), 'utf8').catch(() => ''))),
    )
  await waitFor('the commands run', async () => (await read()).every((pid) => pid > 0))
  return read()
}
