import type { SubagentActivity } from '@deepseek-ai/dsh-subagent'
import { describe, expect, test } from 'vitest'
import { Transcript } from '../src/transcript.ts'
import { createBench, fixture, textOf } from './helpers.ts'

type Update = Parameters<Transcript['add']>[0]

const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 3 }

/** A sign of life that says nothing. */
const alive = { kind: 'text', text: '' }

function say(text: string, messageId?: string): Update {
  return { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, messageId }
}

const call = (toolCallId: string): Update => ({
  sessionUpdate: 'tool_call',
  toolCallId,
  title: 't',
})

function heard(...updates: readonly Update[]): { activities: SubagentActivity[]; text: string } {
  const activities: SubagentActivity[] = []
  const transcript = new Transcript((activity) => activities.push(activity))
  for (const update of updates) transcript.add(update)
  return { activities, text: textOf(transcript) }
}

describe('Transcript', () => {
  test('keeps 16 Mi characters of a message, and says that there was more', () => {
    const transcript = new Transcript(() => {})
    const piece = 'x'.repeat(1024 * 1024)

    for (let count = 0; count < 16; count += 1) transcript.add(say(piece))
    const { remark } = transcript
    transcript.add(say('y'))

    expect(textOf(transcript)).toBe(piece.repeat(16))
    expect(remark).toBeUndefined()
    expect(transcript.remark).toBe(
      'a message is longer than 16777216 characters: its end was left out',
    )
  })

  test.each<[string, Update[], string]>([
    ['nothing', [], ''],
    ['pieces', [say('a'), say('b')], 'ab'],
    ['only blanks', [say(' \n')], ''],
    ['messages that calls part', [say('a'), call('1'), say('b'), call('2'), say('c')], 'c'],
    ['messages that ids part', [say('a', '1'), say('b', '2'), say('c', '2')], 'bc'],
    ['a piece without an id', [say('a', '1'), say('b')], 'ab'],
    ['one message around a call', [say('a', '1'), call('1'), say('b', '1')], 'ab'],
    ['a last message that is blank', [say('a'), call('1'), say(' ')], 'a'],
    ['a last message that is a call', [say('a'), call('1'), call('2')], 'a'],
    [
      'an update of a known call within a message',
      [
        call('1'),
        say('a'),
        { sessionUpdate: 'tool_call_update', toolCallId: '1', status: 'completed' },
        say('b'),
      ],
      'ab',
    ],
  ])('takes the last message with text as the output of %s', (_name, updates, text) => {
    expect(heard(...updates).text).toBe(text)
  })

  test('tells of a call once, whichever of its updates comes first', () => {
    const update = { sessionUpdate: 'tool_call_update', toolCallId: '1' } as const
    const { activities } = heard(
      { ...update, title: 'list files', kind: 'execute', status: 'in_progress' },
      { sessionUpdate: 'tool_call', toolCallId: '1', title: 'again', name: 'bash' },
      { ...update, status: 'failed' },
      { ...update, status: 'completed' },
      { ...update, toolCallId: '2', name: 'read', status: 'completed' },
      { ...update, toolCallId: '3' },
    )

    expect(activities).toEqual([
      { kind: 'tool-start', callId: '1', name: 'execute', title: 'list files' },
      alive,
      { kind: 'tool-end', callId: '1', name: 'execute', isError: true },
      alive,
      { kind: 'tool-start', callId: '2', name: 'read' },
      { kind: 'tool-end', callId: '2', name: 'read', isError: false },
      { kind: 'tool-start', callId: '3', name: 'tool' },
    ])
  })

  test('takes a call that goes on for a sign of life', () => {
    const update = { sessionUpdate: 'tool_call_update', toolCallId: '1' } as const
    const output = { type: 'content', content: { type: 'text', text: 'half of it' } } as const

    const { activities, text } = heard(
      call('1'),
      { ...update, status: 'in_progress' },
      { ...update, content: [output] },
    )

    const start = { kind: 'tool-start', callId: '1', name: 'tool', title: 't' }
    expect({ activities, text }).toEqual({ activities: [start, alive, alive], text: '' })
  })

  test('takes what is no text, and kinds that a parent need not know, for nothing but life', () => {
    const picture = { type: 'image', data: '', mimeType: 'image/png' } as const

    const { activities, text } = heard(
      { sessionUpdate: 'agent_message_chunk', content: picture },
      { sessionUpdate: 'agent_thought_chunk', content: picture },
      { sessionUpdate: 'usage_update', used: 1, size: 2 },
      { sessionUpdate: 'current_mode_update', currentModeId: 'ask' },
    )

    expect({ activities, text }).toEqual({ activities: [alive, alive, alive, alive], text: '' })
  })
})

describe('what an agent does', () => {
  test('shows as updates of the run: text, thoughts, calls, plan, tokens', async () => {
    const entry = { priority: 'high', status: 'pending' }
    const { delegate, updates } = await createBench(fixture('says'))

    await delegate(
      JSON.stringify([
        { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'hm' } },
        {
          sessionUpdate: 'plan',
          entries: [
            { ...entry, content: 'look' },
            { ...entry, content: 'leap' },
          ],
        },
        { sessionUpdate: 'usage_update', used: 1, size: 2, _meta: { 'dsh/usage': usage } },
        { ...call('1'), kind: 'read', status: 'pending' },
        { sessionUpdate: 'tool_call_update', toolCallId: '1', status: 'completed' },
        say('done'),
      ]),
    )

    expect(updates).toEqual([
      { kind: 'reasoning', text: 'hm' },
      { kind: 'plan', text: 'look\nleap' },
      { kind: 'usage', usage },
      { kind: 'tool-start', callId: '1', name: 'read', title: 't' },
      { kind: 'tool-end', callId: '1', name: 'read', isError: false },
      { kind: 'text', text: 'done' },
    ])
  })

  test('is on the result as tokens, when the response tells them', async () => {
    const { delegate } = await createBench(fixture('says', JSON.stringify({ 'dsh/usage': usage })))

    const result = await delegate(JSON.stringify([say('done')]))

    expect(result.usage).toEqual(usage)
  })

  test.each([[{ inputTokens: -1, outputTokens: 5 }], ['many'], [{}]])(
    'is no usage when the response holds %j',
    async (wrong) => {
      const { delegate } = await createBench(
        fixture('says', JSON.stringify({ 'dsh/usage': wrong })),
      )

      const result = await delegate(JSON.stringify([say('done')]))

      expect(result).toEqual({ output: [{ type: 'text', text: 'done' }], stopReason: 'completed' })
    },
  )
})
