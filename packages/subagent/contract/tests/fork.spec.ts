import { countAgents, describeSubagentContract, loadEntry } from '../src/index.ts'

describeSubagentContract('subagent-fork', {
  providerName: 'fork',
  capabilities: { outputSchema: true, depthLimit: true, toolFilter: true },
  inheritsParentContext: true,
  isInProcess: true,
  takesMessages: true,
  takesPrompts: false,
  reportsUsage: true,
  load: async (ctx) => {
    const counts = countAgents(ctx)
    return { fiber: await loadEntry(ctx, '@deepseek-ai/dsh-subagent-fork'), ...counts }
  },
})
