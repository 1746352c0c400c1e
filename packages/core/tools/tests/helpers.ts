/** What the specs of this package share. */
import type { SessionId } from '@deepseek-ai/dsh-session'
import { z } from 'zod'
import type { Tool, ToolAgent, ToolCall, ToolResult, ToolScope } from '../src/index.ts'

/** Answers with the word that it is given. */
export function createTool(overrides: Partial<Tool> = {}): Tool {
  return {
    name: 'echo',
    description: 'says it again',
    parameters: z.object({ word: z.string() }),
    execute: async ({ word }) => `${String(word)}!`,
    ...overrides,
  }
}

/** The part of an agent that tools look at. */
export function createAgent(toolScope?: ToolScope): ToolAgent {
  const agent: unknown = { id: 'agent' as SessionId, toolScope }
  return agent as ToolAgent
}

export function createCall(overrides: Partial<ToolCall> = {}): ToolCall {
  return {
    agent: createAgent(),
    callId: 'call',
    name: 'echo',
    input: { word: 'hello' },
    signal: new AbortController().signal,
    ...overrides,
  }
}

export function textOf({ content }: ToolResult): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}
