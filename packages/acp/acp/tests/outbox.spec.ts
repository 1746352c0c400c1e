import type { SessionUpdate } from '@agentclientprotocol/sdk'
import { gate } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { Outbox } from '../src/outbox.ts'

describe('Outbox', () => {
  test('sends each update at once to a client that keeps up', async () => {
    const { outbox, sent } = createOutbox()

    for (const text of ['a', 'b']) {
      outbox.push(chunk(text))
      await outbox.flushed()
    }

    expect(sent).toEqual([chunk('a'), chunk('b')])
  })

  test('gathers the text that a slow client has not taken yet', async () => {
    const held = gate()
    const { outbox, sent } = createOutbox(held.opened)

    for (let count = 0; count < 10_000; count += 1) outbox.push(chunk('x'))
    held.open()
    await outbox.flushed()

    expect(sent).toEqual([chunk('x'), chunk('x'.repeat(9999))])
  })

  test.each<[string, SessionUpdate, SessionUpdate]>([
    ['messages', chunk('a', 'one'), chunk('b', 'two')],
    ['kinds', chunk('a'), { ...chunk('b'), sessionUpdate: 'agent_thought_chunk' }],
    [
      'contents',
      chunk('a'),
      { ...chunk('b'), content: { type: 'image', mimeType: 'image/png', data: 'AA==' } },
    ],
  ])('keeps different %s apart', async (_, first, second) => {
    const held = gate()
    const { outbox, sent } = createOutbox(held.opened)

    for (const update of [chunk('0'), { ...call, toolCallId: '0' }, first, second]) {
      outbox.push(update)
    }
    held.open()
    await outbox.flushed()

    expect(sent.slice(2)).toEqual([first, second])
  })

  test('keeps only the last word on each call that waits, whatever stands between', async () => {
    const held = gate()
    const { outbox, sent } = createOutbox(held.opened)

    outbox.push(chunk('0'))
    for (let count = 0; count < 1000; count += 1) {
      outbox.push(progress('a', String(count)))
      outbox.push(progress('b', String(count)))
    }
    outbox.push({ sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'completed' })
    held.open()
    await outbox.flushed()

    expect(sent).toEqual([
      chunk('0'),
      { ...progress('a', '999'), status: 'completed' },
      progress('b', '999'),
    ])
  })

  test('adds to a call that was not sent yet how it went on', async () => {
    const held = gate()
    const { outbox, sent } = createOutbox(held.opened)

    outbox.push(chunk('0'))
    outbox.push(call)
    outbox.push({ ...progress('a', 'done'), status: 'completed' })
    held.open()
    await outbox.flushed()

    const { content } = progress('a', 'done')
    expect(sent[1]).toEqual({ ...call, status: 'completed', content })
  })

  test('gives up when nobody is there to read', async () => {
    const outbox = new Outbox(() => Promise.reject(new Error('closed')))

    outbox.push(chunk('a'))
    outbox.push(chunk('b'))

    await expect(outbox.flushed()).resolves.toBeUndefined()
  })
})

const call = {
  sessionUpdate: 'tool_call',
  toolCallId: 'a',
  title: 'a',
  status: 'in_progress',
} as const

function chunk(text: string, messageId = 'one') {
  const content = { type: 'text', text } as const
  return { sessionUpdate: 'agent_message_chunk', messageId, content } as const
}

function progress(toolCallId: string, text: string) {
  const content = [{ type: 'content' as const, content: { type: 'text' as const, text } }]
  return {
    sessionUpdate: 'tool_call_update' as const,
    toolCallId,
    status: 'in_progress' as const,
    content,
  }
}

/** @param room what each update waits for before the next one may go. */
function createOutbox(room: Promise<void> = Promise.resolve()) {
  const sent: SessionUpdate[] = []
  const outbox = new Outbox(async (update) => {
    sent.push(update)
    await room
  })
  return { outbox, sent }
}
