/** What a conversation shows at a request, and whether a rule's conditions hold for it. */
import type { ContentBlock, Message, ModelRequest } from '@deepseek-ai/dsh-llm'

/** What rules look at; taken from one request alone, so agents that run at once never mix. */
export interface Situation {
  /** Text of the last user message, whoever put it there. */
  readonly user: string
  readonly system: string
  /** Texts of the results that answer the last assistant message; absent when there are none. */
  readonly result?: string
  /** The tools that gave these results. */
  readonly resultTools: readonly string[]
  /** Assistant messages since the last user message. */
  readonly step: number
  /** User messages so far. */
  readonly turn: number
  /** The tools that the agent may call. */
  readonly offered: readonly string[]
}

/** Conditions of a rule; all that are given must hold. */
export interface When {
  readonly user?: RegExp
  readonly system?: RegExp
  readonly result?: RegExp
  /** One of the last results is this tool's. */
  readonly tool?: string
  readonly step?: number
  readonly turn?: number
  readonly offers?: string
  readonly lacks?: string
}

/** The texts that a rule may match with a pattern. */
export type Source = 'user' | 'system' | 'result'

/** A situation for which the conditions of a rule hold, with what its patterns captured. */
export interface Match extends Partial<Record<Source, RegExpExecArray>> {
  readonly situation: Situation
}

/** Reads a request. */
export function situationOf({ system, messages, tools }: ModelRequest): Situation {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  const lastAssistant = messages.findLastIndex(({ role }) => role === 'assistant')
  const results = messages.slice(lastAssistant + 1).flatMap(resultsIn)
  return {
    user: textOf(messages[lastUser]?.content ?? []),
    system,
    ...(results.length > 0 && {
      result: results.map(({ content }) => textOf(content)).join('\n\n'),
    }),
    resultTools: results.map(({ name }) => name),
    step: countOf('assistant', messages.slice(lastUser + 1)),
    turn: countOf('user', messages),
    offered: tools.map(({ name }) => name),
  }
}

/** @returns what the patterns captured; absent when a condition does not hold. */
export function matchOf(when: When, situation: Situation): Match | undefined {
  const { step, turn, tool, offers, lacks } = when
  if (step !== undefined && step !== situation.step) return undefined
  if (turn !== undefined && turn !== situation.turn) return undefined
  if (tool !== undefined && !situation.resultTools.includes(tool)) return undefined
  if (offers !== undefined && !situation.offered.includes(offers)) return undefined
  if (lacks !== undefined && situation.offered.includes(lacks)) return undefined
  const match: { -readonly [K in keyof Match]: Match[K] } = { situation }
  for (const source of ['user', 'system', 'result'] as const) {
    const pattern = when[source]
    if (pattern === undefined) continue
    const text = situation[source]
    const found = text === undefined ? null : pattern.exec(text)
    if (found === null) return undefined
    match[source] = found
  }
  return match
}

/** The conditions on one line, for people. */
export function describeWhen(when: When): string {
  const parts = Object.entries(when).map(([key, value]) => `${key} ${String(value)}`)
  return parts.length === 0 ? 'always' : parts.join(', ')
}

function resultsIn(message: Message): Extract<Message, { role: 'tool' }>['content'] | [] {
  return message.role === 'tool' ? message.content : []
}

function countOf(role: Message['role'], messages: readonly Message[]): number {
  return messages.filter((message) => message.role === role).length
}

function textOf(content: readonly ContentBlock[]): string {
  return content.flatMap((block) => (block.type === 'text' ? block.text : [])).join('\n')
}
