import { env } from 'node:process'
import type { Message } from '@deepseek-ai/dsh-llm'
import { bootYml } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import type { Config } from '../src/index.ts'
import { ask, lookTool, resultMessage, userMessage } from './helpers.ts'

const { DEEPSEEK_API_KEY, OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY } = env

const endpoints: [
  string,
  string | undefined,
  Omit<Partial<Config>, 'models'> & { model: string },
][] = [
  [
    'DEEPSEEK_API_KEY',
    DEEPSEEK_API_KEY,
    { provider: 'deepseek', model: env.DEEPSEEK_MODEL ?? 'deepseek-chat' },
  ],
  [
    'OPENAI_API_KEY',
    OPENAI_API_KEY,
    OPENAI_BASE_URL === undefined
      ? { provider: 'openai', model: env.OPENAI_MODEL ?? 'gpt-5-mini' }
      : {
          provider: 'openai-compatible',
          baseURL: OPENAI_BASE_URL,
          model: env.OPENAI_MODEL ?? 'gpt-5-mini',
        },
  ],
  [
    'ANTHROPIC_API_KEY',
    ANTHROPIC_API_KEY,
    { provider: 'anthropic', model: env.ANTHROPIC_MODEL ?? 'claude-haiku-4-5' },
  ],
]

describe.each(endpoints)('the endpoint of %s', (_, apiKey, { model, ...config }) => {
  test.skipIf(apiKey === undefined)(
    'streams text, calls a tool and reads its result',
    async () => {
      const yml = `
- name: '@deepseek-ai/dsh-llm'
- name: '@deepseek-ai/dsh-llm-ai-sdk'
  config: ${JSON.stringify({ ...config, apiKey, models: [model] })}
`
      const ctx = await bootYml(yml)
      const system =
        'Use the tool "look" for what you are asked, then answer in one short sentence.'
      const messages: Message[] = [userMessage('What colour is the sky right now?')]
      const first = await ask(ctx, { model, system, messages, tools: [lookTool] })
      const call = first.content.find((block) => block.type === 'tool-call')
      const callId = call?.type === 'tool-call' ? call.callId : ''
      messages.push({ role: 'assistant', content: first.content }, resultMessage(callId, 'magenta'))

      const second = await ask(ctx, { model, system, messages, tools: [lookTool] })

      expect(first).toMatchObject({ finish: 'tool-calls' })
      expect(second).toMatchObject({ finish: 'stop' })
      expect(JSON.stringify(second.content)).toMatch(/magenta/i)
      expect(second.usage?.inputTokens).toBeGreaterThan(0)
    },
    120_000,
  )

  test.skipIf(apiKey === undefined)(
    'refuses a wrong key',
    async () => {
      const yml = `
- name: '@deepseek-ai/dsh-llm'
- name: '@deepseek-ai/dsh-llm-ai-sdk'
  config: ${JSON.stringify({ ...config, apiKey: 'sk-wrong-key-0000', models: [model] })}
`
      const ctx = await bootYml(yml)

      const { error } = await ask(ctx, { model })

      expect(error?.code).toBe('MODEL_AUTH')
      expect(error?.message).not.toContain('sk-wrong-key-0000')
    },
    60_000,
  )
})
