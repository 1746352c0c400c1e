/** What an ACP child has said and done so far. */
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import type { AssistantContent, Usage } from '@deepseek-ai/dsh-llm'
import type { SubagentActivity } from '@deepseek-ai/dsh-subagent'
import { z } from 'zod'

const count = z.number().int().nonnegative()

/** Where our own server puts its tokens, in the `_meta` of a prompt's response and of usage updates. */
const usageMeta = z.object({
  'dsh/usage': z.object({
    inputTokens: count,
    outputTokens: count,
    cachedInputTokens: count.optional(),
    reasoningTokens: count.optional(),
  }),
})

const kindsOfInterest: ReadonlySet<unknown> = new Set<SessionUpdate['sessionUpdate']>([
  'agent_message_chunk',
  'agent_thought_chunk',
  'tool_call',
  'tool_call_update',
  'plan',
  'usage_update',
])

/** The parameters of a session update as {@link Transcript.add} takes them; nothing when they hold no update. */
export function paramsOfInterest(params: unknown): object | undefined {
  const { update } = (params ?? {}) as { update?: { sessionUpdate?: unknown } | null }
  if (typeof update !== 'object' || update === null) return undefined
  if (kindsOfInterest.has(update.sessionUpdate)) return params as object
  return { ...(params as object), update: mereLife }
}

/** Stands for every kind that is not of interest, those that the SDK does not know among them. */
const mereLife: SessionUpdate = { sessionUpdate: 'session_info_update' }

/** A sign of life that says nothing. */
const alive: SubagentActivity = { kind: 'text', text: '' }

/** How much of a message is kept, in UTF-16 code units: agents may write without end. */
const maxMessageLength = 16 * 1024 * 1024

/** Turns session updates into activities, and keeps the last message that has text. */
export class Transcript {
  /** The child's tokens so far, where it tells them. */
  usage: Usage | undefined
  private readonly report: (activity: SubagentActivity) => void
  private readonly tools = new Map<string, { name: string; isOver: boolean }>()
  private message = ''
  private messageId: string | undefined
  /** The last message before the open one that has text. */
  private earlier = ''
  private isCut = false

  constructor(report: (activity: SubagentActivity) => void) {
    this.report = report
  }

  /** The last message with text, else nothing. */
  get output(): AssistantContent {
    const text = this.message.trim() === '' ? this.earlier : this.message
    return text === '' ? [] : [{ type: 'text', text }]
  }

  /** What the output does not tell of itself. */
  get remark(): string | undefined {
    return this.isCut
      ? `a message is longer than ${maxMessageLength} characters: its end was left out`
      : undefined
  }

  add(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        if (update.content.type === 'text') this.addText(update.content.text, update.messageId)
        else this.report(alive)
        break
      case 'agent_thought_chunk':
        if (update.content.type === 'text') {
          this.report({ kind: 'reasoning', text: update.content.text })
        } else this.report(alive)
        break
      case 'tool_call':
      case 'tool_call_update':
        this.addTool(update)
        break
      case 'plan':
        this.report({ kind: 'plan', text: update.entries.map(({ content }) => content).join('\n') })
        break
      case 'usage_update':
        this.addUsage(update)
        this.report(this.usage === undefined ? alive : { kind: 'usage', usage: this.usage })
        break
      default:
        // Commands, modes and the like: nothing that a parent needs to know.
        this.report(alive)
    }
  }

  /** Takes over the tokens from a message that may tell them. */
  addUsage(message: { readonly _meta?: unknown }): void {
    const meta = usageMeta.safeParse(message['_meta'])
    if (meta.success) this.usage = meta.data['dsh/usage']
  }

  private addText(text: string, id: string | null | undefined): void {
    if (id != null && id !== this.messageId) {
      this.endMessage()
      this.messageId = id
    }
    const room = maxMessageLength - this.message.length
    this.isCut ||= text.length > room
    this.message += text.length > room ? text.slice(0, room) : text
    this.report({ kind: 'text', text })
  }

  private endMessage(): void {
    if (this.message.trim() !== '') this.earlier = this.message
    this.message = ''
    this.messageId = undefined
  }

  /** An update may come before its call, and some calls are only ever updated. */
  private addTool(call: {
    toolCallId: string
    title?: string | null
    name?: string | null
    kind?: string | null
    status?: string | null
  }): void {
    const { toolCallId: callId, status, title } = call
    let tool = this.tools.get(callId)
    const isOver = status === 'completed' || status === 'failed'
    if (tool === undefined) {
      tool = { name: call.name ?? call.kind ?? 'tool', isOver: false }
      this.tools.set(callId, tool)
      // Where messages have no ids, calls part them.
      if (this.messageId === undefined) this.endMessage()
      const { name } = tool
      this.report({ kind: 'tool-start', callId, name, ...(title != null && { title }) })
    } else if (tool.isOver || !isOver) {
      // A tool that tells of its progress.
      this.report(alive)
    }
    if (tool.isOver || !isOver) return
    tool.isOver = true
    this.report({ kind: 'tool-end', callId, name: tool.name, isError: status === 'failed' })
  }
}
