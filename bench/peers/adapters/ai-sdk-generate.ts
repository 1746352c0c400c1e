/** The AI SDK without streams: a tool whose body is another `generateText`. */
import { generateText, stepCountIs, tool } from 'ai'
import { z } from 'zod'
import { type Adapter, delegateText } from '../peer.ts'
import { scriptedAiModel } from './ai-model.ts'

export const adapter: Adapter = {
  title: 'AI SDK (generateText)',
  package: 'ai',
  withoutDeltas: 'generateText gives the text when it is complete',
  create: async (options) => {
    const model = scriptedAiModel(options, 'subagent')
    const subagent = tool({
      description: 'Delegates a task.',
      inputSchema: z.object({ prompt: z.string() }),
      execute: async ({ prompt }) => (await generateText({ model, prompt })).text,
    })
    return {
      delegate: async (calls) => {
        const prompt = delegateText(calls)
        const stopWhen = stepCountIs(5)
        return (await generateText({ model, prompt, tools: { subagent }, stopWhen })).text
      },
    }
  },
}
