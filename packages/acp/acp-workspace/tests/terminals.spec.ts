import { getEventListeners } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RequestError } from '@agentclientprotocol/sdk'
import type { AcpClient } from '@deepseek-ai/dsh-acp'
import type { SessionId } from '@deepseek-ai/dsh-session'
import { temporaryFolder, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { Terminals } from '../src/terminals.ts'
import { bash, start } from './helpers.ts'

const never = new Promise(() => {})
const tooMuch = () => ({ output: `${'é'.repeat(100_000)}end` })
const refuse = () => Promise.reject(RequestError.internalError({}, 'no terminals today'))
const created = 'terminal/create'
const waits = 'terminal/wait_for_exit'
const child = `- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: spawn }
`

describe('a command in a terminal of the client', () => {
  test('gives its output, and is shown by the client', async () => {
    const editor = await start({ calls: [bash('echo out; pwd; echo err >&2')] })
    const sessionId = await editor.open()

    expect(await editor.prompt(sessionId)).toBe('end_turn')

    expect(editor.results(sessionId)[0]?.split('\n')).toEqual(
      expect.arrayContaining(['out', 'err', editor.folder]),
    )
    expect(editor.methods()).toEqual([created, waits, 'terminal/output', 'terminal/release'])
    const content = editor.shown
    expect(content.length).toBeGreaterThan(0)
    for (const one of content) expect(one).toEqual({ type: 'terminal', terminalId: 't0' })
  })

  test('gets the variables of the config, and nothing of ours', async () => {
    const config = { env: { COLOR: 'no' }, shell: '/bin/sh', maxOutputBytes: 1000 }
    const editor = await start({ calls: [bash('echo $COLOR')], config })
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)).toEqual(['no\n'])
    expect(editor.requests[0]?.params).toEqual({
      sessionId,
      command: '/bin/sh',
      args: ['-c', '--', 'echo $COLOR'],
      cwd: editor.folder,
      env: [{ name: 'COLOR', value: 'no' }],
      outputByteLimit: 1000,
    })
  })

  test.each([
    ['a code', 'echo why; exit 3', 'EXIT_NONZERO: why\n[exit code 3]'],
    ['a signal', 'kill -9 $$', 'KILLED: [the shell was killed by SIGKILL]'],
  ])('that ends with %s is an error', async (_, command, result) => {
    const editor = await start({ calls: [bash(command)] })
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)).toEqual([result])
  })

  test('gives the end of its output when the client keeps to no limit', async () => {
    const config = { maxOutputBytes: 100 }
    const calls = [bash('true')]
    const editor = await start({ calls, config, faults: { 'terminal/output': tooMuch } })
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    const [result = ''] = editor.results(sessionId)
    expect(result).toMatch(/^\[the start of the output was left out\]\né+end$/)
    expect(result.length).toBeLessThan(200)
  })

  test('is killed and released when it takes too long', async () => {
    const editor = await start({
      calls: [bash('exec sleep 1000', { timeoutMs: 300 })],
    })
    const sessionId = await editor.open()

    expect(await editor.prompt(sessionId)).toBe('end_turn')

    expect(editor.results(sessionId)[0]).toMatch(/^TIMED_OUT: [^]*\[not ended after 300 ms/)
    expect(editor.terminals.get('t0')?.isReleased).toBe(true)
    expect(editor.terminals.get('t0')?.process.signalCode).toBe('SIGKILL')
  })

  test('is killed and released when the turn is cancelled', async () => {
    const editor = await start({ calls: [bash('echo before; exec sleep 1000')] })
    const sessionId = await editor.open()
    const prompting = editor.prompt(sessionId)
    await waitFor('the command runs', () => editor.terminals.get('t0')?.output === 'before\n')

    await editor.cancel(sessionId)

    expect(await prompting).toBe('cancelled')
    expect(editor.results(sessionId)[0]).toMatch(/^ABORTED: before\n/)
    expect(editor.terminals.get('t0')?.process.signalCode).toBe('SIGKILL')
    expect(editor.methods().slice(-3)).toEqual([
      'terminal/kill',
      'terminal/output',
      'terminal/release',
    ])
  })

  test.each([created, waits, 'terminal/output', 'terminal/release'])(
    'is given up soon after the abort when the client hangs in %s',
    async (method) => {
      const editor = await start({
        calls: [],
        config: { graceMs: 50 },
        faults: { [method]: () => never },
        expectErrors: method === waits ? /did not end a command within 50 ms/ : /^$/,
      })
      const caller = { sessionId: (await editor.open()) as SessionId }
      const { signal, abort } = abortable()
      const request = { command: 'true', cwd: editor.folder, caller, signal }
      const executing = editor.ctx.bash.execute(request)
      await waitFor('the client is asked', () => editor.methods().includes(method))

      abort()

      expect(await executing).toMatchObject({ isAborted: method === created || method === waits })
      expect(getEventListeners(signal, 'abort')).toEqual([])
    },
  )

  test('is released though its terminal comes after the cancel, and after all patience', async () => {
    const { promise, resolve } = Promise.withResolvers<{ terminalId: string }>()
    const editor = await start({
      calls: [bash('true')],
      config: { graceMs: 20 },
      faults: { [created]: () => promise, 'terminal/release': () => ({}) },
    })
    const sessionId = await editor.open()
    const prompting = editor.prompt(sessionId)
    await waitFor('the client is asked', () => editor.methods().includes(created))
    await editor.cancel(sessionId)
    expect(await prompting).toBe('cancelled')

    resolve({ terminalId: 'late' })

    const release = { method: 'terminal/release', params: { sessionId, terminalId: 'late' } }
    await waitFor('it is released', () =>
      editor.requests.some((one) => JSON.stringify(one) === JSON.stringify(release)),
    )
  })

  test('is an error for the model when the client refuses it, and does not run here instead', async () => {
    const editor = await start({ calls: [bash('echo x > ran')], faults: { [created]: refuse } })
    const sessionId = await editor.open()

    expect(await editor.prompt(sessionId)).toBe('end_turn')

    expect(editor.results(sessionId)[0]).toMatch(/^CLIENT_REFUSED: .*no terminals today/)
    expect(existsSync(join(editor.folder, 'ran'))).toBe(false)
  })

  test.each([
    [waits, () => Promise.reject(RequestError.internalError({}, 'lost it')), /^CLIENT_REFUSED/],
    ['terminal/output', () => 7, /^INVALID_ANSWER/],
  ])('is released when the client fails in %s', async (method, answer, result) => {
    const editor = await start({ calls: [bash('true')], faults: { [method]: answer } })
    const sessionId = await editor.open()

    expect(await editor.prompt(sessionId)).toBe('end_turn')

    expect(editor.results(sessionId)[0]).toMatch(result)
    expect(editor.terminals.get('t0')?.isReleased).toBe(true)
  })

  test('ends with the connection, and the agent with it', async () => {
    const editor = await start({ calls: [bash('exec sleep 1000')] })
    const sessionId = await editor.open()
    editor.prompt(sessionId).catch(() => {})
    await waitFor('the command runs', () => editor.methods().includes(waits))
    const session = editor.session(sessionId)

    editor.drop()

    await waitFor('the agent is gone', () => editor.ctx.agents.list().length === 0)
    const events = Array.from(session?.events() ?? [])
    expect(events.find(({ type }) => type === 'tool/result')).toMatchObject({
      data: { isError: true },
    })
    expect(events.at(-1)?.type).toBe('turn/end')
  })

  test('belongs to its session: a cancel of one leaves the other alone', async () => {
    const editor = await start({
      calls: (cwd) => [bash(`echo ready; until [ -e ${cwd}/go ]; do sleep 0.02; done; echo went`)],
    })
    const [first, second] = [await temporaryFolder(), await temporaryFolder()]
    const [one, two] = [await editor.open(first), await editor.open(second)]
    const prompting = [editor.prompt(one), editor.prompt(two)]
    await waitFor('both run', () =>
      ['t0', 't1'].every((id) => editor.terminals.get(id)?.output === 'ready\n'),
    )

    await editor.cancel(one)
    expect(await prompting[0]).toBe('cancelled')
    await writeFile(join(second, 'go'), '')

    expect(await prompting[1]).toBe('end_turn')
    expect(editor.results(two)).toEqual(['ready\nwent\n'])
    const sessions = editor.requests.filter(({ method }) => method === created)
    expect(sessions.map(({ params }) => [params['sessionId'], params['cwd']])).toEqual([
      [one, first],
      [two, second],
    ])
  })

  test('of a child runs in the session above it, and is not shown as a call of that', async () => {
    const input = { description: 'a task', prompt: 'child' }
    const subagent = { name: 'subagent', input, callId: 'same' }
    const inChild = { ...bash('echo of the child'), callId: 'same' }
    const editor = await start({
      calls: (_, prompt) => [prompt.includes('child') ? inChild : subagent],
      entries: child,
    })
    const sessionId = await editor.open()

    expect(await editor.prompt(sessionId)).toBe('end_turn')

    expect(editor.terminals.get('t0')?.output).toBe('of the child\n')
    expect(editor.requests[0]?.params).toMatchObject({ sessionId, cwd: editor.folder })
    expect(editor.shown).not.toContainEqual({ type: 'terminal', terminalId: 't0' })
  })

  test('of an agent that no client has opened runs here', async () => {
    const editor = await start({ calls: [bash('echo here')] })
    const { agent, dispose } = editor.ctx.agents.registry.create({ cwd: editor.folder })

    await agent.send('go')

    expect(editor.results(agent.id)).toEqual(['here\n'])
    expect(editor.methods()).toEqual([])
    await dispose()
  })

  test('runs here, said once, where the client offers no terminals', async () => {
    const editor = await start({
      calls: [bash('echo one'), bash('echo two')],
      capabilities: {},
      config: { files: false },
      expectErrors:
        /^[^\n]*the client offers no terminals: those of this machine are used[^\n]*\n$/,
    })
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)).toEqual(['one\n', 'two\n'])
    expect(editor.methods()).toEqual([])
  })

  test('runs here when the config says so', async () => {
    const editor = await start({ calls: [bash('echo here')], config: { terminals: false } })
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)).toEqual(['here\n'])
    expect(editor.methods()).toEqual([])
  })
})

describe('Terminals', () => {
  const request = { command: 'true', cwd: '/', timeoutMs: 1000 }
  const options = { shell: 'sh', env: {}, maxOutputBytes: 100, graceMs: 1000 }

  test('starts nothing under a signal that is aborted', async () => {
    const { client, requested } = createClient()
    const terminals = new Terminals(options, () => {})

    const result = await terminals.run(client, { ...request, signal: AbortSignal.abort() })

    expect(result).toMatchObject({ isAborted: true, output: '' })
    expect(requested).toEqual([])
  })

  test('ends with all its commands, and starts none afterwards', async () => {
    const { client, requested } = createClient()
    const terminals = new Terminals(options, () => {})
    const running = terminals.run(client, { ...request, timeoutMs: 100_000 })
    await waitFor('it runs', () => requested.includes(waits))

    await terminals.dispose()

    expect(requested.slice(-3)).toEqual(['terminal/kill', 'terminal/output', 'terminal/release'])
    expect(await running).toMatchObject({ isAborted: true, signal: 'SIGTERM', output: 'out' })
    expect(await terminals.run(client, request)).toMatchObject({ isAborted: true })
    expect(requested.filter((method) => method === created)).toHaveLength(1)
  })
})

/** A client whose command runs until it is killed. */
function createClient(): { readonly client: AcpClient; readonly requested: readonly string[] } {
  const requested: string[] = []
  const { promise: exit, resolve } = Promise.withResolvers<object>()
  const request = async (method: string): Promise<unknown> => {
    requested.push(method)
    if (method === created) return { terminalId: 't' }
    if (method === 'terminal/kill') resolve({ exitCode: null, signal: 'SIGTERM' })
    if (method === waits) return exit
    return { output: 'out', truncated: false }
  }
  const sessionId = 's' as SessionId
  const client = { sessionId, capabilities: {}, request: request as never, show: async () => {} }
  return { client, requested }
}

function abortable(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const controller = new AbortController()
  return { signal: controller.signal, abort: () => controller.abort() }
}
