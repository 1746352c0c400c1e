/** Closes what a crash left open in a log. */
import type { SessionEvent, SessionEventData, SessionEventType } from './types.ts'

/** An event that is still to be appended. */
export type PendingEvent = {
  [K in SessionEventType]: { readonly type: K; readonly data: SessionEventData[K] }
}[SessionEventType]

/** The events that balance a log whose last turn never ended; none when it did. */
export function closeOpenTurn(events: readonly SessionEvent[]): PendingEvent[] {
  const start = events.findLastIndex(({ type }) => type === 'turn/start')
  const end = events.findLastIndex(({ type }) => type === 'turn/end')
  if (start <= end) return []
  const turn = events.slice(start)
  return [
    ...openCalls(turn).flatMap(closeCall),
    ...closeStep(turn),
    { type: 'turn/end', data: { reason: 'interrupted' } },
  ]
}

interface OpenCall {
  readonly event: SessionEventData['tool/call']
  readonly isLogged: boolean
}

/** Calls of the last message that have no result, in call order, logged as calls or not. */
function openCalls(turn: readonly SessionEvent[]): OpenCall[] {
  const last = turn.findLastIndex(({ type }) => type === 'assistant/message')
  const message = turn[last]
  if (message?.type !== 'assistant/message') return []
  const logged = new Set<string>()
  const answered = new Set<string>()
  for (const event of turn.slice(last)) {
    if (event.type === 'tool/call') logged.add(event.data.callId)
    else if (event.type === 'tool/result') answered.add(event.data.callId)
  }
  return message.data.content.flatMap((block) => {
    if (block.type !== 'tool-call' || answered.has(block.callId)) return []
    const { callId, name, input } = block
    return [{ event: { callId, name, input }, isLogged: logged.has(callId) }]
  })
}

function closeCall({ event, isLogged }: OpenCall): PendingEvent[] {
  const { callId, name } = event
  const text = isLogged
    ? `tool "${name}" was interrupted: it may have done part of its work`
    : `tool "${name}" was not executed: the process ended first`
  const result: PendingEvent = {
    type: 'tool/result',
    data: {
      callId,
      name,
      content: [{ type: 'text', text }],
      isError: true,
      code: 'INTERRUPTED',
    },
  }
  return isLogged ? [result] : [{ type: 'tool/call', data: event }, result]
}

function closeStep(turn: readonly SessionEvent[]): PendingEvent[] {
  const start = turn.findLast((event) => event.type === 'step/start')
  const end = turn.findLast((event) => event.type === 'step/end')
  if (start === undefined || start.data.step === end?.data.step) return []
  return [{ type: 'step/end', data: { step: start.data.step } }]
}
