import { describe, expect, test, vi } from 'vitest'
import { Screen } from '../src/screen.ts'
import { createTerminal } from './helpers.ts'

const up2 = '\u001b[2A\u001b[J'

describe('Screen', () => {
  test('redraws live lines in their place, and takes them away before a line and before text', () => {
    vi.stubEnv('NO_COLOR', '1')
    const terminal = createTerminal()
    const screen = new Screen(terminal.streams)

    screen.live(['a', 'b'])
    screen.live(['c', 'd'])
    screen.line('line')
    screen.live(['e', 'f'])
    screen.text('text')
    screen.live([])

    expect(terminal.shown()).toBe(`a\nb\n${up2}c\nd\n${up2}line\ne\nf\n${up2}text`)
  })

  test('begins progress on a line of its own when an answer left one open', () => {
    vi.stubEnv('NO_COLOR', '1')
    const terminal = createTerminal()
    const screen = new Screen(terminal.streams)

    screen.text('half a')
    screen.line('progress')
    screen.text('b\n')
    screen.line('more')
    screen.endText()

    expect(terminal.shown()).toBe('half a\nprogress\nb\nmore\n')
  })

  test('ends an open line once', () => {
    const terminal = createTerminal()
    const screen = new Screen(terminal.streams)

    screen.text('a')
    screen.endText()
    screen.endText()

    expect(terminal.stdout()).toBe('a\n')
  })

  test('colours progress on a terminal, and not with NO_COLOR', () => {
    // Node asks all of these before it believes a terminal; a CI machine sets some.
    for (const name of ['NO_COLOR', 'NODE_DISABLE_COLORS', 'FORCE_COLOR', 'CI'])
      vi.stubEnv(name, undefined)
    vi.stubEnv('TERM', 'xterm-256color')
    const coloured = createTerminal()
    new Screen(coloured.streams).line('a', 'red')
    vi.stubEnv('NO_COLOR', '1')
    const plain = createTerminal()
    new Screen(plain.streams).line('a', 'red')

    expect(coloured.stderr()).toBe('\u001b[31ma\u001b[39m\n')
    expect(plain.stderr()).toBe('a\n')
  })

  test('draws nothing live and colours nothing where no terminal reads it', () => {
    const terminal = createTerminal({ isTTY: false })
    const screen = new Screen(terminal.streams)

    screen.live(['a'])
    screen.line('b', 'red')

    expect(terminal.shown()).toBe('b\n')
  })

  test('draws nothing live on a dumb terminal', () => {
    vi.stubEnv('TERM', 'dumb')
    const terminal = createTerminal()

    new Screen(terminal.streams).live(['a'])

    expect(terminal.shown()).toBe('')
  })

  test('makes text harmless for a terminal, and gives it verbatim to a file', () => {
    const terminal = createTerminal()
    const file = createTerminal({ isTTY: false })

    new Screen(terminal.streams).text('\u001b[2Ja')
    new Screen(file.streams).text('\u001b[2Ja')

    expect(terminal.stdout()).toBe('a')
    expect(file.stdout()).toBe('\u001b[2Ja')
  })

  test('takes a terminal that does not know its size for one of 80 columns', () => {
    expect(new Screen(createTerminal({ columns: 0 }).streams).columns).toBe(80)
  })
})
