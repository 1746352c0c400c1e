/** What the specs of this package share. */
import type { SessionEvent, SessionEventData, SessionEventType } from '@deepseek-ai/dsh-session'

/** An event to come: its type, its data, and its `seq` when it is not the next. */
export type Draft = readonly [type: SessionEventType, data?: object, seq?: number]

const usage = { inputTokens: 1, outputTokens: 1 }
const content = [{ type: 'text', text: 'text' }]

/** Data that is good enough for each type. */
const sample: { readonly [K in SessionEventType]: object } = {
  'turn/start': { turn: 1, model: 'model' },
  'user/message': { content },
  'context/message': { content, source: 'test' },
  'step/start': { step: 1 },
  'assistant/message': { content, model: 'model', usage, finish: 'stop' },
  'tool/call': { callId: 'a', name: 'work', input: {} },
  'tool/result': { callId: 'a', name: 'work', content, isError: false },
  'step/end': { step: 1 },
  'turn/end': { reason: 'completed' },
}

export function dataOf<T extends SessionEventType>(
  type: T,
  data: object = {},
): SessionEventData[T] {
  return { ...sample[type], ...data } as SessionEventData[T]
}

/** Makes a log of drafts, numbered from `from`. */
export function createLog(drafts: readonly Draft[], from = 0): SessionEvent[] {
  return drafts.map(([type, data, seq], index) => {
    const event = { seq: seq ?? from + index, time: 0, type, data: dataOf(type, data) }
    return event as SessionEvent
  })
}

/** The data of a message that makes a call per id. */
export function calling(...callIds: string[]): object {
  return {
    content: callIds.map((callId) => ({ type: 'tool-call', callId, name: 'work', input: {} })),
  }
}
