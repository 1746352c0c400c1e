/** The AI SDK with streams: a tool whose body is another `streamText`. */
import { type ModelMessage, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import { type Adapter, delegateText } from '../peer.ts'
import { pastMessages, scriptedAiModel } from './ai-model.ts'

export const adapter: Adapter = {
  title: 'AI SDK (streamText)',
  package: 'ai',
  create: async (options) => {
    const model = scriptedAiModel(options, 'subagent')
    const subagentAfter = (past: readonly ModelMessage[]) =>
      tool({
        description: 'Delegates a task.',
        inputSchema: z.object({ prompt: z.string() }),
        execute: async ({ prompt: content }) => {
          const messages: ModelMessage[] = [...past, { role: 'user', content }]
          let text = ''
          for await (const delta of streamText({ model, messages }).textStream) {
            text += delta
            options.onDelta()
          }
          return text
        },
      })
    const fresh = { subagent: subagentAfter([]) }
    const stopWhen = stepCountIs(5)
    const ask = async (
      calls: number,
      past: readonly ModelMessage[] = [],
      tools = fresh,
    ): Promise<string> => {
      const messages: ModelMessage[] = [...past, { role: 'user', content: delegateText(calls) }]
      return streamText({ model, messages, tools, stopWhen }).text
    }
    return {
      delegate: (calls) => ask(calls),
      grow: async (turns) => {
        const past = pastMessages(turns)
        const inheriting = { subagent: subagentAfter(past) }
        return { spawn: () => ask(1, past), fork: () => ask(1, past, inheriting) }
      },
    }
  },
}
