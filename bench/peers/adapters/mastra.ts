/** Mastra: a tool whose body runs the child agent. */
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { z } from 'zod'
import { type Adapter, delegateText } from '../peer.ts'
import { scriptedAiModel } from './ai-model.ts'

export const adapter: Adapter = {
  title: 'Mastra',
  package: '@mastra/core',
  create: async (options) => {
    const model = scriptedAiModel(options, 'subagent')
    const child = new Agent({ id: 'child', name: 'child', instructions: 'Work.', model })
    const subagent = createTool({
      id: 'subagent',
      description: 'Delegates a task.',
      inputSchema: z.object({ prompt: z.string() }),
      execute: async ({ prompt }) => {
        if (options.deltas === 1) return (await child.generate(prompt)).text
        let text = ''
        const { textStream } = await child.stream(prompt)
        for await (const delta of textStream) {
          text += delta
          options.onDelta()
        }
        return text
      },
    })
    const tools = { subagent }
    const parent = new Agent({ id: 'parent', name: 'parent', instructions: 'Work.', model, tools })
    return { delegate: async (calls) => (await parent.generate(delegateText(calls))).text }
  },
}
