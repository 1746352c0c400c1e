import { bootYml, scriptedModel } from '@deepseek-ai/dsh-testkit'
import { violationsOf } from '@deepseek-ai/dsh-invariants'
import { expect, test } from 'vitest'
import { z } from 'zod'

test('one yml entry gives an agent that answers and calls tools', async () => {
  const ctx = await bootYml(`- name: '@deepseek-ai/dsh-agent-core'`)
  ctx.llm.registerAdapter(
    scriptedModel([{ text: 'let me see', calls: [{ name: 'add', input: { a: 1, b: 2 } }] }, 'it is 3']),
  )
  ctx.tools.register({
    name: 'add',
    description: 'adds',
    parameters: z.object({ a: z.number(), b: z.number() }),
    execute: async ({ a, b }) => `${a + b}`,
  })
  const { agent, dispose } = ctx.agents.create({ cwd: '/' })

  const end = await agent.send('what is 1 + 2?')

  expect(end).toEqual({ reason: 'completed' })
  expect(violationsOf(agent.session.events())).toEqual([])
  expect([...agent.session.events()].map(({ type }) => type)).toEqual([
    'turn/start',
    'user/message',
    'step/start',
    'assistant/message',
    'tool/call',
    'tool/result',
    'step/end',
    'step/start',
    'assistant/message',
    'step/end',
    'turn/end',
  ])
  await dispose()
  expect(ctx.agents.list()).toEqual([])
})
