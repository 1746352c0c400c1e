/** This harness: the whole real path, with the logs of both sessions. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import { createHarness } from '../../src/harness.ts'
import { type Adapter, delegateText, pastTurn } from '../peer.ts'

export const adapter: Adapter = {
  title: 'dsh (spawn)',
  create: async ({ deltas, onDelta, until }) => {
    const options = { deltas, ...(until !== undefined && { until }) }
    const harness = await createHarness(options)
    if (deltas > 1) harness.ctx.on('agent/delta', onDelta)
    const grown = async (provider: 'spawn' | 'fork', turns: number): Promise<Agent> => {
      const { agent } = (await createHarness({ ...options, provider })).parent()
      for (let turn = 0; turn < turns; turn += 1) await agent.send(pastTurn.user)
      return agent
    }
    return {
      delegate: async (calls) => {
        const { agent, dispose } = harness.parent()
        const text = await answerOf(agent, calls)
        await dispose()
        return text
      },
      grow: async (turns) => {
        const [spawning, forking] = [await grown('spawn', turns), await grown('fork', turns)]
        return { spawn: () => answerOf(spawning, 1), fork: () => answerOf(forking, 1) }
      },
    }
  },
}

async function answerOf(agent: Agent, calls: number): Promise<string> {
  const { reason } = await agent.send(delegateText(calls))
  const last = agent.session.deriveMessages().at(-1)?.content[0]
  return reason === 'completed' && last?.type === 'text' ? last.text : reason
}
