/** The model adapter that answers from a playbook. */
import { setTimeout as delay } from 'node:timers/promises'
import type { ModelAdapter, ModelRequest, StreamChunk } from '@deepseek-ai/dsh-llm'
import { ScriptError } from './errors.ts'
import type { Playbook, Reply } from './playbook.ts'
import { describeWhen, matchOf, type Situation, situationOf } from './rule.ts'

interface AdapterOptions {
  readonly adapterName: string
  readonly model: string
  /** Of replies that do not tell. */
  readonly chunkSize?: number
  /** Of replies that do not tell. */
  readonly delayMs?: number
}

/** Makes an adapter whose one model replies with the first rule that matches the conversation. */
export function createAdapter(
  { adapterName, model, chunkSize, delayMs }: AdapterOptions,
  playbook: Playbook,
): ModelAdapter {
  return {
    name: adapterName,
    models: [{ name: model }],
    stream: (request) => play({ chunkSize, delayMs, ...replyTo(request, playbook) }, request),
  }
}

function replyTo(request: ModelRequest, playbook: Playbook): Reply {
  const situation = situationOf(request)
  for (const { when, reply } of playbook.rules) {
    const match = matchOf(when, situation)
    if (match !== undefined) return reply(match)
  }
  throw noRule(situation, playbook)
}

async function* play(
  reply: Reply,
  { messages, signal }: ModelRequest,
): AsyncGenerator<StreamChunk> {
  // The conversation only grows, so its length makes the call's id unique in it.
  for (const chunk of chunksOf(reply, `call-${messages.length}`)) {
    if (reply.delayMs !== undefined) await delay(reply.delayMs, undefined, { signal })
    signal.throwIfAborted()
    yield chunk
  }
  if (reply.stall === true) await abortOf(signal)
  signal.throwIfAborted()
  if (reply.usage !== undefined) yield { type: 'usage', usage: reply.usage }
  if (reply.error !== undefined) yield { type: 'finish', reason: 'error', error: reply.error }
  else yield { type: 'finish', reason: reply.finish ?? (reply.calls ? 'tool-calls' : 'stop') }
}

function* chunksOf(reply: Reply, callPrefix: string): Generator<StreamChunk> {
  const { reasoning = '', text = '', calls = [], chunkSize = Infinity } = reply
  for (const piece of piecesOf(reasoning, chunkSize)) yield { type: 'reasoning-delta', text: piece }
  for (const piece of piecesOf(text, chunkSize)) yield { type: 'text-delta', text: piece }
  for (const [index, { name, input }] of calls.entries()) {
    yield { type: 'tool-call', callId: `${callPrefix}-${index + 1}`, name, input }
  }
}

/** Pieces of at most `size` code points. */
function* piecesOf(text: string, size: number): Generator<string> {
  const points = Array.from(text)
  for (let start = 0; start < points.length; start += size) {
    yield points.slice(start, start + size).join('')
  }
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function noRule(situation: Situation, { source, rules }: Playbook): ScriptError {
  const { user, result, resultTools, step, turn } = situation
  const seen = [`user text ${quote(user)}`, `step ${step}`, `turn ${turn}`]
  if (result !== undefined) seen.push(`result of ${resultTools.join(', ')} ${quote(result)}`)
  const known = rules.map(({ when }, index) => `${index + 1} (${describeWhen(when)})`).join('; ')
  return new ScriptError(
    'NO_RULE',
    `no rule of ${source} matches ${seen.join(', ')}; its rules: ${known}`,
  )
}

function quote(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200).toWellFormed()}…` : text)
}
