/** This harness: the whole real path, with the logs of both sessions. */
import { createHarness } from '../../src/harness.ts'
import { type Adapter, closing, delegateText } from '../peer.ts'

export const adapter: Adapter = {
  title: 'dsh (spawn)',
  create: async ({ deltas, onDelta, until }) => {
    const harness = await createHarness({ deltas, ...(until !== undefined && { until }) })
    if (deltas > 1) harness.ctx.on('agent/delta', onDelta)
    return {
      delegate: async (calls) => {
        const { agent, dispose } = harness.parent()
        const { reason } = await agent.send(delegateText(calls))
        await dispose()
        return reason === 'completed' ? closing : reason
      },
    }
  },
}
