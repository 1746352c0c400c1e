import type { SubagentActivity } from '@deepseek-ai/dsh-subagent'
import { describe, expect, test } from 'vitest'
import { ProgressLine } from '../src/progress.ts'

function linesOf(...activities: SubagentActivity[]): (string | undefined)[] {
  const line = new ProgressLine()
  return activities.map((activity) => line.push(activity))
}

const text = (piece: string): SubagentActivity => ({ kind: 'text', text: piece })

describe('ProgressLine', () => {
  test('shows the last line of the text, across its pieces', () => {
    expect(linesOf(text('I loo'), text('k at\nthe fi'), text('le\n'))).toEqual([
      'I loo',
      'the fi',
      'the file',
    ])
  })

  test('shows the current tool, then the text after it', () => {
    const start: SubagentActivity = { kind: 'tool-start', callId: 'a', name: 'read', title: 'x.ts' }

    expect(linesOf(text('before'), start, text('after'))).toEqual(['before', 'read: x.ts', 'after'])
  })

  test('shows a tool without a title by its name', () => {
    expect(linesOf({ kind: 'tool-start', callId: 'a', name: 'bash' })).toEqual(['bash'])
  })

  test('shows the last line of a plan', () => {
    expect(linesOf({ kind: 'plan', text: 'first\nthen' })).toEqual(['then'])
  })

  test('shows nothing new for blank text, reasoning, usage and the end of a tool', () => {
    expect(
      linesOf(
        text(' \n'),
        { kind: 'reasoning', text: 'hm' },
        { kind: 'usage', usage: { inputTokens: 1, outputTokens: 1 } },
        { kind: 'tool-end', callId: 'a', name: 'read', isError: false },
      ),
    ).toEqual([undefined, undefined, undefined, undefined])
  })

  test('stays short, and well-formed over surrogates that were cut', () => {
    const lines = linesOf(text('🙂'.repeat(300)), text('x'))

    for (const line of lines) {
      expect(Array.from(line ?? '').length).toBe(80)
      expect(line?.isWellFormed()).toBe(true)
    }
  })
})
