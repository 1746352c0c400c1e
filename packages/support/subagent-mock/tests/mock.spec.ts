import type {
  SubagentActivity,
  SubagentRunContext,
  SubagentStartRequest,
} from '@deepseek-ai/dsh-subagent'
import { gate } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { createMockProvider, type MockChild } from '../src/index.ts'

const request = { prompt: 'go' } as SubagentStartRequest

function createContext(id: string, said: string[] = []): SubagentRunContext {
  return {
    runId: `run-${id}`,
    childId: id,
    depth: 1,
    report: (activity: SubagentActivity) => activity.kind === 'text' && said.push(activity.text),
  } as unknown as SubagentRunContext
}

describe('createMockProvider', () => {
  test('records the requests, who is alive and who was disposed', async () => {
    const hold = gate()
    const mock = createMockProvider({ script: () => hold.opened.then(() => 'ok') })
    const first = mock.start(request, createContext('a'))
    const second = mock.start(request, createContext('b'))
    expect(mock.requests).toEqual([request, request])
    expect([...mock.alive]).toEqual(['a', 'b'])

    hold.open()
    await Promise.all([first.result, second.result])
    await second.dispose()

    expect(mock.alive.size).toBe(0)
    expect(mock.disposed).toEqual(['b'])
  })

  test('gives a script its request, its place and its signal', async () => {
    const children: MockChild[] = []
    const mock = createMockProvider({
      script: (child) => {
        children.push(child)
        return new Promise(() => {})
      },
    })
    mock.start(request, createContext('a'))
    const run = mock.start(request, createContext('b'))

    run.cancel()

    expect(children.map(({ index }) => index)).toEqual([0, 1])
    expect(children.map(({ signal }) => signal.aborted)).toEqual([false, true])
    expect(children[1]?.request).toBe(request)
    expect(children[1]?.context.childId).toBe('b')
  })

  test('streams what a child says, and ignores it after the end', async () => {
    const said: string[] = []
    const hold = gate()
    const ended = gate()
    const mock = createMockProvider({
      script: async ({ say }) => {
        say('one ')
        say('two')
        await hold.opened
        say(' three')
        ended.open()
        return {}
      },
    })
    const run = mock.start(request, createContext('a', said))

    run.cancel()
    hold.open()
    await ended.opened

    expect(said).toEqual(['one ', 'two'])
    expect(await run.result).toMatchObject({ output: [{ type: 'text', text: 'one two' }] })
  })

  test('rejects with what a script throws, also when it is not asynchronous', async () => {
    const mock = createMockProvider({
      script: () => {
        throw new Error('broken')
      },
    })

    const run = mock.start(request, createContext('a'))

    await expect(run.result).rejects.toThrow('broken')
    expect(mock.alive.size).toBe(0)
  })

  test('disposes once, however often it is asked', async () => {
    const mock = createMockProvider()
    const run = mock.start(request, createContext('a'))

    expect(run.dispose()).toBe(run.dispose())

    await run.dispose()
    expect(mock.disposed).toEqual(['a'])
  })
})
