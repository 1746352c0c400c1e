/** The harness under measurement: the whole real path, and a model that answers at once. */
import { Context } from '@deepseek-ai/cordis'
import type { AgentHandle, AgentRegistry } from '@deepseek-ai/dsh-agent'
import * as agentCore from '@deepseek-ai/dsh-agent-core'
import type { ModelRequest, StreamChunk } from '@deepseek-ai/dsh-llm'
import * as jsonl from '@deepseek-ai/dsh-session-jsonl'
import SubagentService from '@deepseek-ai/dsh-subagent'
import * as fork from '@deepseek-ai/dsh-subagent-fork'
import * as spawn from '@deepseek-ai/dsh-subagent-spawn'
import * as toolSubagent from '@deepseek-ai/dsh-tool-subagent'

export interface Harness {
  readonly ctx: Context
  readonly agents: AgentRegistry
  /** A parent that is ready to be sent a task. */
  parent(): AgentHandle
  dispose(): Promise<void>
}

export interface HarnessOptions {
  /** Which provider the tool starts children on; default `spawn`. */
  readonly provider?: 'spawn' | 'fork'
  /** Deltas of a child's answer; default 1. */
  readonly deltas?: number
  /** Where sessions are stored; absent: nowhere. */
  readonly root?: string
  /** Holds every child's answer. */
  readonly until?: () => Promise<void>
}

/** A task that makes the parent call `subagent` that many times in one message. */
export const delegate = (calls: number): string => `delegate ${calls}`
const childTask = 'do the work'

export async function createHarness(options: HarnessOptions = {}): Promise<Harness> {
  const { provider = 'spawn', root } = options
  const ctx = new Context()
  await ctx.plugin(agentCore, {})
  await ctx.plugin(SubagentService, {
    maxConcurrent: 1e6,
    maxConcurrentPerParent: 1e6,
    maxPerTurn: 1e6,
  })
  await ctx.plugin(provider === 'spawn' ? spawn : fork, {})
  await ctx.plugin(toolSubagent, { provider, maxDepth: 3 })
  if (root !== undefined) await ctx.plugin(jsonl, { root })
  ctx.llm.registerAdapter({
    name: 'instant',
    models: [{ name: 'instant' }],
    stream: (request) => answer(request, options),
  })
  const { registry } = ctx.agents
  return {
    ctx,
    agents: registry,
    parent: () => registry.create({ cwd: '/' }),
    dispose: () => ctx.fiber.dispose(),
  }
}

/** A parent calls the tool and then closes; a child answers with text. */
async function* answer(
  { messages }: ModelRequest,
  { deltas = 1, until }: HarnessOptions,
): AsyncGenerator<StreamChunk, void, void> {
  const last = messages.at(-1)
  const block = last?.content[0]
  const text = block?.type === 'text' ? block.text : ''
  if (text === childTask) {
    await until?.()
    for (let count = 0; count < deltas; count += 1) yield { type: 'text-delta', text: 'word ' }
    yield { type: 'finish', reason: 'stop' }
  } else if (text.startsWith('delegate ')) {
    const calls = Number(text.slice('delegate '.length))
    for (let count = 0; count < calls; count += 1) {
      const input = { description: 'work', prompt: childTask }
      yield { type: 'tool-call', callId: `call-${count}`, name: 'subagent', input }
    }
    yield { type: 'finish', reason: 'tool-calls' }
  } else {
    yield { type: 'text-delta', text: 'done' }
    yield { type: 'finish', reason: 'stop' }
  }
}
