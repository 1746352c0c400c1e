import { stripVTControlCharacters } from 'node:util'
import { gate, scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { booted, createTerminal } from './helpers.ts'

const ctrlC = '\u0003'
const ctrlD = '\u0004'

beforeEach(() => {
  vi.stubEnv('NO_COLOR', '1')
  vi.stubEnv('TERM', 'xterm')
})

async function serving(
  script: Parameters<typeof scriptedModel>[0],
  options: { isTTY?: boolean; config?: Record<string, unknown> } = {},
) {
  const terminal = createTerminal(options)
  const app = await booted(terminal, {}, options.config)
  const model = scriptedModel(script)
  app.ctx.llm.registerAdapter(model)
  const code = app.begin()
  await terminal.shows('model scripted')
  return { ...terminal, app, model, code }
}

describe('the REPL', () => {
  test('shows a prompt, streams the answer and asks again', async () => {
    const door = gate()
    const { type, shows, shown, code } = await serving([
      { deltas: ['one ', 'two'], until: door.opened },
      'three',
    ])

    type('hi\r')
    await shows('one two')
    door.open()
    await shows(/one two\n[^]*> /)
    type('again\r')
    await shows('three\n')
    type(ctrlD)

    expect(await code).toBe(0)
    // readline moves the cursor behind the prompt before it echoes.
    expect(shown()).toContain('> \u001b[3Ghi')
  })

  test('takes its prompt from the config', async () => {
    const { shows, type, code, shown } = await serving(['x'], { config: { prompt: 'you: ' } })

    await shows('you: ')
    type(ctrlD)
    await code

    expect(shown()).not.toContain('> ')
  })

  test('keeps the conversation over its turns', async () => {
    const { type, shows, model, code } = await serving(['one', 'two'])

    type('first\rsecond\r')
    await shows('two')
    type(ctrlD)
    await code

    expect(model.requests[1]?.messages).toHaveLength(3)
  })

  test('takes a paste of several lines as one prompt, once it is entered', async () => {
    const { type, shows, model, code } = await serving(['one', 'two'])

    type('look: \u001b[200~/first\nsecond\r\nthird\u001b[201~, please\r')
    await shows('one')
    type('next\r')
    await shows('two')
    type(ctrlD)
    await code

    const text = 'look: /first\nsecond\nthird, please'
    expect(model.requests[0]?.messages[0]?.content).toEqual([{ type: 'text', text }])
    expect(model.requests).toHaveLength(2)
  })

  test('takes no paste of several lines for a command', async () => {
    const { type, shows, model, code } = await serving(['one'])

    type('\u001b[200~/model\nnonsense\u001b[201~\r')
    await shows('one')
    type(ctrlD)
    await code

    expect(model.requests).toHaveLength(1)
  })

  test('leaves the terminal as it was', async () => {
    const { type, shown, code, streams } = await serving(['one'])

    type(ctrlD)
    await code

    expect(shown().indexOf('\u001b[?2004h')).toBeLessThan(shown().lastIndexOf('\u001b[?2004l'))
    expect(shown()).toContain('\u001b[?2004h')
    expect(streams.stdin.listenerCount('keypress')).toBe(0)
  })

  test('answers each line of a pipe in turn, without a prompt, and ends with it', async () => {
    const terminal = createTerminal({ isTTY: false })
    const app = await booted(terminal)
    app.ctx.llm.registerAdapter(scriptedModel(['one', 'two']))

    const code = app.begin()
    terminal.streams.stdin.push('first\n\nsecond')
    terminal.streams.stdin.push(null)

    expect(await code).toBe(0)
    expect(terminal.stdout()).toBe('one\ntwo\n')
  })

  test('does not echo what is typed into an answer, and takes it afterwards', async () => {
    const door = gate()
    const { type, shows, shown, code } = await serving([
      { text: 'working', until: door.opened },
      'next',
    ])

    type('hi\r')
    await shows('working')
    type('typed early\r')
    door.open()
    await shows('next')
    type(ctrlD)
    await code

    expect(shown()).toMatch(/working\n[^]*next/)
    expect(shown()).not.toContain('workingtyped')
  })

  test('makes what a model says harmless', async () => {
    const { type, shows, shown, code } = await serving(['\u001b]0;owned\u0007safe\u001b[2J'])

    type('hi\r')
    await shows('safe')
    type(ctrlD)
    await code

    expect(shown()).not.toContain('owned')
    expect(shown()).not.toContain('\u001b[2J')
  })

  test('shows tool calls in one line, and why one failed', async () => {
    const { type, shows, code } = await serving([
      { text: 'let me', calls: [{ name: 'no\u001b[2Jpe', input: { path: 'a\nb', n: 1 } }] },
      'done',
    ])

    type('hi\r')
    await shows('let me\n* nope path=a b n=1\n! nope: no tool "nope"')
    await shows('done\n')
    type(ctrlD)

    expect(await code).toBe(0)
  })

  test('gives the reason of a failure the room that it needs', async () => {
    const { type, shows, app, code } = await serving([{ calls: [{ name: 'fails' }] }, 'done'])
    app.ctx.tools.register({
      name: 'fails',
      description: '',
      parameters: z.object({}),
      execute: async () => ({
        content: [{ type: 'text', text: `${'a long preface '.repeat(6)}\nReason: no luck` }],
        isError: true,
        code: 'FAILED',
      }),
    })

    type('hi\r')
    await shows(/! fails: a long preface .*preface Reason: no luck\n/)
    await shows('done\n')
    type(ctrlD)

    expect(await code).toBe(0)
  })

  test('names its session when that is stored', async () => {
    const terminal = createTerminal({ columns: 90 })
    const app = await booted(terminal)
    app.ctx.llm.registerAdapter(scriptedModel(['x']))
    const settled = Promise.resolve()
    app.ctx.sessions.registerStore({
      open: () => {},
      append: () => {},
      flush: () => settled,
      close: () => settled,
      load: () => Promise.reject(new Error('nothing is loaded here')),
    })

    const code = app.begin()
    await terminal.shows('> ')
    const [agent] = app.ctx.agents.list()
    terminal.type(ctrlD)
    await code

    expect(terminal.shown()).toContain(`session ${agent?.id}, /help\n`)
  })

  test('says that its session is not stored', async () => {
    const { type, shows, code } = await serving(['x'])

    await shows('model scripted, session not stored, /help\n')
    type(ctrlD)

    expect(await code).toBe(0)
  })

  test('shows reasoning when the config says so', async () => {
    const shy = await serving([{ reasoning: 'hmm', text: 'a' }])
    shy.type('hi\r')
    await shy.shows('a\n')
    const open = await serving([{ reasoning: 'hmm', text: 'a' }], {
      config: { showReasoning: true },
    })
    open.type('hi\r')
    await open.shows('hmm')

    expect(shy.shown()).not.toContain('hmm')
  })

  test('tells why a turn failed and goes on', async () => {
    const { type, shows, code } = await serving([
      { finish: 'error', error: { code: 'MODEL_AUTH', message: 'bad key' } },
      { text: 'cut', finish: 'max-tokens' },
      'fine',
    ])

    type('hi\r')
    await shows('the turn failed: bad key (MODEL_AUTH)')
    type('hi\r')
    await shows('the turn ended early: max-tokens')
    type('hi\r')
    await shows('fine')
    type(ctrlD)

    expect(await code).toBe(0)
  })
})

describe('what plugins log', () => {
  test('is shown over the prompt, which is drawn anew with what was typed', async () => {
    const { type, shows, stderr, app, code } = await serving(['x'])
    type('half a li')
    await shows('half a li')

    app.ctx.logger('plugin').warn('mind \u001b[2Jthis')
    await shows('\r\u001b[J[warn] plugin: mind this\n')
    await shows(/mind this\n[^]*> half a li/)
    type('ne\r')
    await shows('x\n')
    type(ctrlD)

    expect(await code).toBe(0)
    expect(stderr()).toContain('[warn] plugin: mind this\n')
  })

  test('does not get lost under the live lines of children', async () => {
    const door = gate()
    const { type, shows, shown, app, code } = await serving((request, index) => {
      const [first] = request.messages[0]?.content ?? []
      if (first?.type === 'text' && first.text === 'child')
        return { until: door.opened, text: 'ok' }
      return index === 0
        ? { calls: [{ name: 'delegate', input: { description: 'task', prompt: 'child' } }] }
        : 'fine'
    })
    type('hi\r')
    await shows('-> task [spawn]')

    app.ctx.logger('plugin').warn('mind this')
    await shows('\u001b[1A\u001b[J[warn] plugin: mind this\n')
    door.open()
    await shows('fine\n')
    type(ctrlD)

    expect(await code).toBe(0)
    expect(shown()).not.toContain('mind this\n\u001b[1A')
  })
})

describe('children', () => {
  const calls = [
    { name: 'delegate', input: { description: 'look around', prompt: 'look' } },
    { name: 'delegate', input: { description: 'sum up', prompt: 'sum' } },
  ]

  test('have a live line each, with label, current tool, elapsed time and tokens', async () => {
    const door = gate()
    const terminal = createTerminal({ columns: 70 })
    const app = await booted(terminal)
    app.ctx.llm.registerAdapter(
      scriptedModel((request, index) => {
        const [first] = request.messages[0]?.content ?? []
        const task = first?.type === 'text' ? first.text : ''
        if (task === 'hi') return index === 0 ? { calls } : 'all done'
        return index === 0
          ? { calls: [{ name: 'wait', input: { path: 'src/a.ts' } }] }
          : `${task} done`
      }),
    )
    app.ctx.tools.register({
      name: 'wait',
      description: 'waits',
      parameters: z.object({ path: z.string() }),
      execute: async () => {
        await door.opened
        return ''
      },
    })
    const code = app.begin()
    await terminal.shows('> ')
    terminal.type('hi\r')

    await terminal.shows(
      /-> look around \[spawn\] \| wait src\/a\.ts \| 0s \| 15 tokens\n-> sum up \[spawn\] \| wait src\/a\.ts \| 0s \| 15 tokens\n/,
    )
    door.open()
    await terminal.shows(/-> look around \[spawn\]: completed \| \d+ms \| 30 tokens\n/)
    await terminal.shows('all done\n')
    terminal.type(ctrlD)

    expect(await code).toBe(0)
    expect(terminal.shown()).toContain('\u001b[2A\u001b[J')
    const rows = stripVTControlCharacters(terminal.shown()).split('\n')
    const widths = rows.filter((row) => row.includes('[spawn]')).map((row) => row.length)
    expect(Math.max(...widths)).toBeLessThanOrEqual(70)
  })
})

describe('Ctrl-C', () => {
  test('cancels the turn and its children, and the REPL goes on', async () => {
    const never = new Promise(() => {})
    const { type, shows, shown, app, code } = await serving((request, index) => {
      if (request.messages[0]?.content[0]?.type !== 'text') return ''
      if (request.messages[0].content[0].text === 'child')
        return { text: 'child works', until: never }
      return index === 0
        ? { calls: [{ name: 'delegate', input: { description: 'task', prompt: 'child' } }] }
        : 'fine'
    })
    type('hi\r')
    await shows('task [spawn]')
    await waitFor('the child writes', () => app.ctx.agents.list().length === 2)

    type(ctrlC)
    await shows(/cancelled\n[^]*> /)
    await waitFor('the child is gone', () => app.ctx.agents.list().length === 1)
    type('again\r')
    await shows('fine\n')
    type(ctrlD)

    expect(await code).toBe(0)
    expect(shown()).toContain('task [spawn]: aborted')
  })

  test('leaves when it comes again while the turn is still ending', async () => {
    const { type, shows, code, app } = await serving([{ calls: [{ name: 'deaf' }] }])
    const door = gate()
    app.ctx.tools.register({
      name: 'deaf',
      description: '',
      parameters: z.object({}),
      execute: () => door.opened.then(() => ''),
    })
    type('hi\r')
    await shows('* deaf')

    type(ctrlC)
    type(ctrlC)
    door.open()

    expect(await code).toBe(130)
  })

  test('leaves when nothing runs', async () => {
    const { type, shows, code } = await serving(['x'])
    await shows('> ')

    type(ctrlC)

    expect(await code).toBe(130)
  })

  test('first takes back what was typed', async () => {
    const { type, shows, code } = await serving(['x'])
    await shows('> ')

    type('some words')
    await shows('some words')
    type(ctrlC)
    type('/exit\r')

    expect(await code).toBe(0)
  })

  test('takes back also what was pasted', async () => {
    const { type, shows, model, code } = await serving(['x'])
    await shows('> ')

    type('\u001b[200~first\nsecond\u001b[201~')
    await shows('second')
    type(ctrlC)
    type('hi\r')
    await shows('x')
    type(ctrlD)
    await code

    expect(model.requests[0]?.messages[0]?.content).toEqual([{ type: 'text', text: 'hi' }])
  })

  test('ends a paste whose end never came', async () => {
    const { type, shows, model, code } = await serving(['x'])
    await shows('> ')

    type('\u001b[200~first\r')
    await shows('first')
    type(ctrlC)
    type('hi\r')
    await shows('x')
    type(ctrlD)
    await code

    expect(model.requests[0]?.messages[0]?.content).toEqual([{ type: 'text', text: 'hi' }])
  })

  test('comes as SIGINT where stdin is no terminal', async () => {
    const never = new Promise(() => {})
    const { streams, shows, app, code } = await serving([{ text: 'on it', until: never }], {
      isTTY: false,
    })
    streams.stdin.push('hi\n')
    await shows('on it')

    expect(app.interrupt()).toBe(true)
    await shows('cancelled')
    expect(app.interrupt()).toBe(true)

    expect(await code).toBe(130)
  })
})

describe('Ctrl-D', () => {
  test('while a turn runs leaves when the turn has ended', async () => {
    const door = gate()
    const { type, shows, code } = await serving([
      { deltas: ['begun', ' ended'], until: door.opened },
    ])
    type('go\r')
    await shows('begun')

    type(ctrlD)
    door.open()

    await shows('ended')
    expect(await code).toBe(0)
  })
})

describe('Ctrl-Z', () => {
  test('and a return to the foreground leave a REPL that reads', async () => {
    // The stop itself would stop the test: the shell's part is played here.
    const kill = vi.spyOn(process, 'kill').mockImplementation(() => true)
    const { type, shows, code } = await serving(() => 'still here')
    type('\u001a')
    await waitFor('it stops', () => kill.mock.calls.some(([, signal]) => signal === 'SIGTSTP'))

    process.emit('SIGCONT', 'SIGCONT')
    kill.mockRestore()
    type('hello\r')

    await shows('still here')
    type(ctrlD)
    expect(await code).toBe(0)
  })
})

describe('commands', () => {
  test('show and choose the model', async () => {
    const { type, shows, app, code } = await serving(['x'])
    app.ctx.llm.registerAdapter(scriptedModel(['from the other'], 'other'))

    type('/model\r')
    await shows('model scripted (known: scripted, other)')
    type('/model nope\r')
    await shows('no model "nope" (registered: scripted, other)')
    type('/model other\r')
    await shows('model other (known: scripted, other)')
    type('hi\r')
    await shows('from the other')
    type('/exit\r')

    expect(await code).toBe(0)
  })

  test('are listed by /help, and an unknown one is told', async () => {
    const { type, shows, code } = await serving(['x'])

    type('/help\r')
    await shows('/model [name]')
    type('/nope\r')
    await shows('no command "/nope"')
    type(ctrlD)

    expect(await code).toBe(0)
  })

  test('are not what begins with a path or a space', async () => {
    const { type, shows, model, code } = await serving(['one', 'two'])

    type('/etc/hosts is what?\r')
    await shows('one')
    type(' /help\r')
    await shows('two')
    type(ctrlD)
    await code

    expect(model.requests).toHaveLength(2)
  })
})

describe('the end', () => {
  test('comes with the signal, with the agent disposed and no listener left', async () => {
    const never = new Promise(() => {})
    const { type, shows, app, code, streams } = await serving([{ text: 'on it', until: never }])
    const hooks = () =>
      Object.values(app.ctx.root.events._hooks).reduce((sum, list) => sum + list.length, 0)
    type('hi\r')
    await shows('on it')

    app.controller.abort()
    await code

    expect(app.ctx.agents.list()).toEqual([])
    expect(streams.stdout.listenerCount('resize')).toBe(0)
    const after = hooks()
    const again = new AbortController()
    const second = app.serve(again.signal)
    again.abort()
    await second
    expect(hooks()).toBe(after)
  })
})
