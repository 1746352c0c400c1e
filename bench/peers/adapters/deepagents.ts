/** deepagents: the child is a subagent of the `task` tool that comes with the parent. */
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, type BaseMessage, HumanMessage } from '@langchain/core/messages'
import type { ChatResult } from '@langchain/core/outputs'
import { createDeepAgent } from 'deepagents'
import {
  type Adapter,
  answerTo,
  childTask,
  delegateText,
  pastOf,
  pastTurn,
  type PeerOptions,
} from '../peer.ts'

class ScriptedModel extends BaseChatModel {
  private readonly options: PeerOptions

  constructor(options: PeerOptions) {
    super({})
    this.options = options
  }

  override _llmType(): string {
    return 'scripted'
  }

  override bindTools(): this {
    return this
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const last = messages.at(-1)
    const answer = await answerTo(last?.type === 'human' ? last.text : undefined, this.options)
    const message =
      answer.kind === 'calls'
        ? new AIMessage({
            content: '',
            tool_calls: answer.ids.map((id) => ({
              id,
              name: 'task',
              args: { description: childTask, subagent_type: 'worker' },
              type: 'tool_call' as const,
            })),
          })
        : new AIMessage(answer.pieces.join(''))
    return { generations: [{ text: message.text, message }] }
  }
}

export const adapter: Adapter = {
  title: 'deepagents',
  package: 'deepagents',
  withoutDeltas: 'the task tool gives the text when it is complete',
  withoutFork: 'a subagent of the task tool sees its task alone',
  create: async (options) => {
    const model = new ScriptedModel(options)
    const worker = { name: 'worker', description: 'Works.', systemPrompt: 'Work.', model }
    const agent = createDeepAgent({ model, subagents: [worker] })
    const ask = async (calls: number, past: readonly BaseMessage[] = []): Promise<string> => {
      const messages = [...past, new HumanMessage(delegateText(calls))]
      const { messages: all } = await agent.invoke({ messages })
      return all.at(-1)?.text ?? ''
    }
    return {
      delegate: (calls) => ask(calls),
      grow: async (turns) => {
        const past = pastOf<BaseMessage>(turns, () => [
          new HumanMessage(pastTurn.user),
          new AIMessage(pastTurn.assistant),
        ])
        return { spawn: () => ask(1, past) }
      },
    }
  },
}
