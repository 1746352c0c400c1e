import type { Config as CoreConfig } from '@deepseek-ai/dsh-agent-core'
import { bootYml, startModelServer } from '@deepseek-ai/dsh-testkit'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { apiKey, modelNames } from './helpers.ts'

test('an agent calls tools in parallel through a model API, and sends back what it must', async () => {
  const server = await startModelServer([
    {
      reasoning: 'I look twice',
      signature: 'sig-1',
      text: 'looking',
      calls: [
        { name: 'look', input: { at: 'sky' } },
        { name: 'look', input: { at: 'sea' } },
      ],
      usage: { inputTokens: 50, outputTokens: 9, cachedInputTokens: 40 },
    },
    'both are blue',
  ])
  const model = modelNames.anthropic
  const core: CoreConfig = { maxSteps: 2 }
  const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-agent-core'
  config: ${JSON.stringify(core)}
- name: '@deepseek-ai/dsh-llm-ai-sdk'
  config: ${JSON.stringify({ provider: 'anthropic', baseURL: server.baseURL, apiKey, models: [model] })}
`)
  ctx.tools.register({
    name: 'look',
    description: 'looks',
    parameters: z.object({ at: z.string() }),
    parallel: true,
    execute: async ({ at }) => `${at} is blue`,
  })
  const { agent, dispose } = ctx.agents.create({ cwd: '/' })

  const end = await agent.send('what colour are they?')

  expect(end).toEqual({ reason: 'completed' })
  expect(agent.session.usage).toEqual({ inputTokens: 60, outputTokens: 14, cachedInputTokens: 40 })
  expect(server.requests[1]?.messages).toEqual([
    { role: 'user', text: 'what colour are they?' },
    { role: 'assistant', text: 'looking' },
    { role: 'tool', text: 'sky is blue' },
    { role: 'tool', text: 'sea is blue' },
  ])
  expect(JSON.stringify(server.requests[1]?.body)).toContain('"signature":"sig-1"')
  await dispose()
})
