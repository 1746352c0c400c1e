import { createMockProvider, type MockChild, type MockReply } from '@deepseek-ai/dsh-subagent-mock'
import { behaviourOf, describeSubagentContract, untilExists } from '../src/index.ts'

describeSubagentContract('subagent-mock', {
  providerName: 'mock',
  capabilities: { outputSchema: false, depthLimit: true, toolFilter: false },
  inheritsParentContext: false,
  isInProcess: false,
  takesMessages: false,
  takesPrompts: false,
  reportsUsage: true,
  load: async (ctx) => {
    const mock = createMockProvider({
      capabilities: { depthLimit: true },
      script: play,
      isDeaf: ({ prompt }) => {
        const behaviour = behaviourOf(prompt)
        return 'isDeaf' in behaviour && behaviour.isDeaf === true
      },
    })
    const fiber = await ctx.plugin({
      name: 'mock',
      inject: ['subagents'],
      apply: (inner) => void inner.subagents.registerProvider(mock),
    })
    return { fiber, started: () => mock.requests.length, alive: () => mock.alive.size }
  },
})

const usage = { inputTokens: 10, outputTokens: 5 }

async function play({ request, say }: MockChild): Promise<MockReply> {
  const behaviour = behaviourOf(request.prompt)
  switch (behaviour.does) {
    case 'answer':
      say(behaviour.text)
      if (behaviour.after !== undefined) await untilExists(behaviour.after)
      return { usage }
    case 'messages': {
      const text = behaviour.texts.findLast((said) => said.trim() !== '') ?? ''
      return { text, usage }
    }
    case 'stop':
      return { text: behaviour.text, stopReason: behaviour.reason }
    case 'fail':
      say(behaviour.text)
      return { stopReason: 'error', diagnostic: behaviour.message }
    case 'hang':
      say(behaviour.text)
      return new Promise<never>(() => {})
    case 'hand-in':
    case 'delegate':
      throw new Error(`a mock does not ${behaviour.does}`)
  }
}
