/** What an ACP child has said and done so far. */
import type { PromptResponse, SessionUpdate } from '@agentclientprotocol/sdk'
import type { AssistantContent, Usage } from '@deepseek-ai/dsh-llm'
import type { SubagentActivity } from '@deepseek-ai/dsh-subagent'
import { z } from 'zod'

/** Where our own server puts its tokens, in the `_meta` of a prompt's response. */
const usageMeta = z.object({
  'dsh/usage': z.object({
    inputTokens: z.number(),
    outputTokens: z.number(),
    cachedInputTokens: z.number().optional(),
    reasoningTokens: z.number().optional(),
  }),
})

/** Turns session updates into activities, and keeps the last message that has text. */
export class Transcript {
  private readonly report: (activity: SubagentActivity) => void
  private readonly tools = new Map<string, string>()
  private message = ''
  private messageId: string | undefined
  /** The last message before the open one that has text. */
  private earlier = ''

  constructor(report: (activity: SubagentActivity) => void) {
    this.report = report
  }

  /** The last message with text, else nothing. */
  get output(): AssistantContent {
    const text = this.message.trim() === '' ? this.earlier : this.message
    return text.trim() === '' ? [] : [{ type: 'text', text }]
  }

  add(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk': {
        const id = update.messageId ?? this.messageId
        if (id !== this.messageId) this.endMessage()
        this.messageId = id
        if (update.content.type !== 'text') break
        this.message += update.content.text
        this.report({ kind: 'text', text: update.content.text })
        break
      }
      case 'agent_thought_chunk':
        if (update.content.type !== 'text') break
        this.report({ kind: 'reasoning', text: update.content.text })
        break
      case 'tool_call':
        this.endMessage()
        this.addTool(update)
        break
      case 'tool_call_update':
        this.addTool(update)
        break
      case 'plan':
        this.report({ kind: 'plan', text: update.entries.map(({ content }) => content).join('\n') })
        break
      default:
      // Commands, modes and the like: nothing that a parent needs to know.
    }
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
    const name = call.name ?? this.tools.get(callId) ?? call.kind ?? 'tool'
    if (!this.tools.has(callId)) {
      this.report({ kind: 'tool-start', callId, name, ...(title != null && { title }) })
    }
    this.tools.set(callId, name)
    if (status !== 'completed' && status !== 'failed') return
    this.report({ kind: 'tool-end', callId, name, isError: status === 'failed' })
  }
}

/** The tokens of a turn, where the agent tells them. */
export function usageOf(response: PromptResponse): Usage | undefined {
  const meta = usageMeta.safeParse(response['_meta'])
  return meta.success ? meta.data['dsh/usage'] : undefined
}
