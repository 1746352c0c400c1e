/** The AI SDK with streams: a tool whose body is another `streamText`. */
import { stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import { type Adapter, delegateText } from '../peer.ts'
import { scriptedAiModel } from './ai-model.ts'

export const adapter: Adapter = {
  title: 'AI SDK (streamText)',
  package: 'ai',
  create: async (options) => {
    const model = scriptedAiModel(options, 'subagent')
    const subagent = tool({
      description: 'Delegates a task.',
      inputSchema: z.object({ prompt: z.string() }),
      execute: async ({ prompt }) => {
        let text = ''
        for await (const delta of streamText({ model, prompt }).textStream) {
          text += delta
          options.onDelta()
        }
        return text
      },
    })
    return {
      delegate: async (calls) => {
        const prompt = delegateText(calls)
        return streamText({ model, prompt, tools: { subagent }, stopWhen: stepCountIs(5) }).text
      },
    }
  },
}
