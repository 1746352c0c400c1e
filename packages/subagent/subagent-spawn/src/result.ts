/** What became of an in-process child, read from its log. */
import type { AssistantContent } from '@deepseek-ai/dsh-llm'
import type { Session, TurnEnd } from '@deepseek-ai/dsh-session'
import type { SubagentResult, SubagentStopReason } from '@deepseek-ai/dsh-subagent'
import type { StructuredOutput } from './structured.ts'

const stopReasons: Readonly<Record<TurnEnd['reason'], SubagentStopReason>> = {
  completed: 'completed',
  aborted: 'aborted',
  error: 'error',
  'max-tokens': 'max-tokens',
  'max-steps': 'error',
  refusal: 'refusal',
  interrupted: 'error',
}

/** The result of a child whose turn ended so. */
export function resultOf(
  session: Session,
  { reason, error }: TurnEnd,
  structured: StructuredOutput | undefined,
): SubagentResult {
  const base = { output: outputOf(session), usage: session.usage }
  const stopReason = stopReasons[reason]
  if (stopReason !== 'completed' || structured === undefined) {
    return { ...base, stopReason, ...(error !== undefined && { diagnostic: error.message }) }
  }
  const { value } = structured
  return value === undefined
    ? { ...base, stopReason: 'error', diagnostic: structured.problem }
    : { ...base, stopReason, structured: value }
}

/** The texts of the last message with any that the child itself produced, never one of its seed. */
export function outputOf(session: Session): AssistantContent {
  const first = session.header.seedLength ?? 0
  for (let seq = session.length - 1; seq >= first; seq -= 1) {
    const event = session.at(seq)
    if (event?.type !== 'assistant/message') continue
    const texts = event.data.content.filter((block) => block.type === 'text')
    if (texts.some(({ text }) => text.trim() !== '')) return Object.freeze(texts)
  }
  return []
}
