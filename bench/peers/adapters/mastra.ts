/** Mastra: a tool whose body runs the child agent. */
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { z } from 'zod'
import { type Adapter, delegateText } from '../peer.ts'
import { pastMessages, scriptedAiModel } from './ai-model.ts'

type Messages = ReturnType<typeof pastMessages>

export const adapter: Adapter = {
  title: 'Mastra',
  package: '@mastra/core',
  create: async (options) => {
    const model = scriptedAiModel(options, 'subagent')
    const child = new Agent({ id: 'child', name: 'child', instructions: 'Work.', model })
    const work = async (messages: Messages): Promise<string> => {
      if (options.deltas === 1) return (await child.generate(messages)).text
      let text = ''
      const { textStream } = await child.stream(messages)
      for await (const delta of textStream) {
        text += delta
        options.onDelta()
      }
      return text
    }
    const parentOf = (childPast: Messages): Agent => {
      const subagent = createTool({
        id: 'subagent',
        description: 'Delegates a task.',
        inputSchema: z.object({ prompt: z.string() }),
        execute: ({ prompt }) => work([...childPast, { role: 'user', content: prompt }]),
      })
      const tools = { subagent }
      return new Agent({ id: 'parent', name: 'parent', instructions: 'Work.', model, tools })
    }
    const fresh = parentOf([])
    const ask = async (calls: number, past: Messages = [], parent = fresh): Promise<string> =>
      (await parent.generate([...past, { role: 'user', content: delegateText(calls) }])).text
    return {
      delegate: (calls) => ask(calls),
      grow: async (turns) => {
        const past = pastMessages(turns)
        const inheriting = parentOf(past)
        return { spawn: () => ask(1, past), fork: () => ask(1, past, inheriting) }
      },
    }
  },
}
