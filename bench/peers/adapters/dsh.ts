/** This harness: the whole real path, with the logs of both sessions. */
import { createHarness } from '../../src/harness.ts'
import { type Adapter, delegateText } from '../peer.ts'

export const adapter: Adapter = {
  title: 'dsh (spawn)',
  create: async ({ deltas, onDelta, until }) => {
    const harness = await createHarness({ deltas, ...(until !== undefined && { until }) })
    if (deltas > 1) harness.ctx.on('agent/delta', onDelta)
    return {
      delegate: async (calls) => {
        const { agent, dispose } = harness.parent()
        const { reason } = await agent.send(delegateText(calls))
        const last = agent.session.deriveMessages().at(-1)?.content[0]
        await dispose()
        return reason === 'completed' && last?.type === 'text' ? last.text : reason
      },
    }
  },
}
