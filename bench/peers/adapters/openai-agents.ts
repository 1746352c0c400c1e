/** OpenAI Agents: a tool whose body runs the child agent; tracing is off, for it would call out. */
import {
  Agent,
  type AgentInputItem,
  assistant,
  type Model,
  Runner,
  type StreamEvent,
  setTracingDisabled,
  tool,
  Usage,
  user,
} from '@openai/agents'
import { z } from 'zod'
import {
  type Adapter,
  type Answer,
  answerTo,
  childTask,
  delegateText,
  pastOf,
  pastTurn,
  type PeerOptions,
} from '../peer.ts'

type Request = Parameters<Model['getResponse']>[0]

function lastOf({ input }: Request): string | undefined {
  if (typeof input === 'string') return input
  const last = input.at(-1)
  if (last === undefined || !('role' in last) || last.role !== 'user') return undefined
  if (typeof last.content === 'string') return last.content
  const [block] = last.content
  return block?.type === 'input_text' ? block.text : undefined
}

function outputOf(answer: Answer): Awaited<ReturnType<Model['getResponse']>>['output'] {
  return answer.kind === 'calls'
    ? answer.ids.map((callId) => ({
        type: 'function_call',
        callId,
        name: 'subagent',
        arguments: JSON.stringify({ prompt: childTask }),
        status: 'completed',
      }))
    : [
        {
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: answer.pieces.join('') }],
        },
      ]
}

function scripted(options: PeerOptions): Model {
  return {
    getResponse: async (request) => ({
      usage: new Usage(),
      output: outputOf(await answerTo(lastOf(request), options)),
    }),
    async *getStreamedResponse(request) {
      const answer = await answerTo(lastOf(request), options)
      yield { type: 'response_started' }
      if (answer.kind === 'text') {
        for (const delta of answer.pieces) yield { type: 'output_text_delta', delta }
      }
      const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
      const response = { id: 'r', usage, output: outputOf(answer) }
      yield { type: 'response_done', response } as StreamEvent
    },
  }
}

export const adapter: Adapter = {
  title: 'OpenAI Agents',
  package: '@openai/agents',
  create: async (options) => {
    setTracingDisabled(true)
    const model = scripted(options)
    const runner = new Runner({ tracingDisabled: true })
    const child = new Agent({ name: 'child', instructions: '', model })
    const work = async (input: AgentInputItem[]): Promise<string> => {
      if (options.deltas === 1) return (await runner.run(child, input)).finalOutput ?? ''
      const run = await runner.run(child, input, { stream: true })
      for await (const event of run) {
        if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') {
          options.onDelta()
        }
      }
      await run.completed
      return run.finalOutput ?? ''
    }
    const parentOf = (childPast: readonly AgentInputItem[]) => {
      const subagent = tool({
        name: 'subagent',
        description: 'Delegates a task.',
        parameters: z.object({ prompt: z.string() }),
        execute: ({ prompt }) => work([...childPast, user(prompt)]),
      })
      return new Agent({ name: 'parent', instructions: '', model, tools: [subagent] })
    }
    const fresh = parentOf([])
    const ask = async (
      calls: number,
      past: readonly AgentInputItem[] = [],
      parent = fresh,
    ): Promise<string> =>
      (await runner.run(parent, [...past, user(delegateText(calls))])).finalOutput ?? ''
    return {
      delegate: (calls) => ask(calls),
      grow: async (turns) => {
        const past = pastOf(turns, () => [user(pastTurn.user), assistant(pastTurn.assistant)])
        const inheriting = parentOf(past)
        return { spawn: () => ask(1, past), fork: () => ask(1, past, inheriting) }
      },
    }
  },
}
