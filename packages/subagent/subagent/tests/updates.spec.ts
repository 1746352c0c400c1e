import { onTestFinished, vi, describe, expect, test } from 'vitest'
import type { SubagentActivity, SubagentRunId, SubagentUpdate } from '../src/types.ts'
import { UpdateFeed } from '../src/updates.ts'

const runId = 'run' as SubagentRunId

interface Feed {
  readonly updates: SubagentUpdate[]
  readonly push: (activity: SubagentActivity) => void
  readonly flush: () => void
}

/** A feed on a clock that only the test moves. */
function createFeed(onUpdate: (update: SubagentUpdate) => void = () => {}): Feed {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  vi.advanceTimersByTime(1000)
  const updates: SubagentUpdate[] = []
  const feed = new UpdateFeed(runId, (update) => {
    updates.push(update)
    onUpdate(update)
  })
  return {
    updates,
    push: (activity) => feed.push(activity, performance.now()),
    flush: () => feed.flush(performance.now()),
  }
}

const say = (text: string): SubagentActivity => ({ kind: 'text', text })
const think = (text: string): SubagentActivity => ({ kind: 'reasoning', text })
const callTool: SubagentActivity = { kind: 'tool-start', callId: 'c', name: 'bash' }

describe('UpdateFeed', () => {
  test('passes the first text on at once and gathers what follows for 50 ms', () => {
    const { updates, push } = createFeed()

    push(say('a'))
    for (const text of ['b', 'c', 'd']) push(say(text))
    vi.advanceTimersByTime(49)
    const early = [...updates]
    vi.advanceTimersByTime(1)

    expect(early).toEqual([{ runId, kind: 'text', text: 'a' }])
    expect(updates.slice(1)).toEqual([{ runId, kind: 'text', text: 'bcd' }])
  })

  test('passes nothing on for a text that is empty, and gathers on', () => {
    const { updates, push } = createFeed()

    push(say('a'))
    for (const activity of [think('b'), say(''), think('c'), think('')]) push(activity)
    vi.advanceTimersByTime(50)

    expect(updates).toEqual([
      { runId, kind: 'text', text: 'a' },
      { runId, kind: 'reasoning', text: 'bc' },
    ])
  })

  test('a child that streams 1,000 deltas in a second makes no more than 21 updates', () => {
    const { updates, push } = createFeed()

    for (let index = 0; index < 1000; index += 1) {
      push(say('x'))
      vi.advanceTimersByTime(1)
    }
    vi.advanceTimersByTime(50)

    expect(updates.length).toBeGreaterThan(1)
    expect(updates.length).toBeLessThanOrEqual(21)
    expect(updates.map((update) => 'text' in update && update.text).join('')).toBe('x'.repeat(1000))
  })

  test('text that was gathered goes before a tool event, and is not sent again', () => {
    const { updates, push } = createFeed()

    push(say('a'))
    push(say('b'))
    push(callTool)
    push(say('c'))
    vi.advanceTimersByTime(100)

    expect(updates).toEqual([
      { runId, kind: 'text', text: 'a' },
      { runId, kind: 'text', text: 'b' },
      { runId, ...callTool },
      { runId, kind: 'text', text: 'c' },
    ])
  })

  test('text and reasoning are never mixed, and keep their order', () => {
    const { updates, push } = createFeed()

    push(think('hm'))
    push(think('…'))
    push(say('yes'))
    push(think('or no'))
    vi.advanceTimersByTime(100)

    expect(updates).toEqual([
      { runId, kind: 'reasoning', text: 'hm' },
      { runId, kind: 'reasoning', text: '…' },
      { runId, kind: 'text', text: 'yes' },
      { runId, kind: 'reasoning', text: 'or no' },
    ])
  })

  test('the flush at the end sends the rest and leaves no timer', () => {
    const { updates, push, flush } = createFeed()
    push(say('a'))
    push(say('b'))

    flush()

    expect(updates.at(-1)).toEqual({ runId, kind: 'text', text: 'b' })
    expect(vi.getTimerCount()).toBe(0)
    flush()
    expect(updates).toHaveLength(2)
  })

  test('text from within a listener is neither lost nor doubled', () => {
    const { updates, push } = createFeed((update) => {
      if ('text' in update && update.text === 'a') push(say('b'))
    })

    push(say('a'))
    vi.advanceTimersByTime(100)

    expect(updates.map((update) => 'text' in update && update.text)).toEqual(['a', 'b'])
  })
})
