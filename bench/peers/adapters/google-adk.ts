/** Google ADK: the child is an agent that the parent has as a tool. */
import {
  AgentTool,
  BaseLlm,
  InMemoryRunner,
  LlmAgent,
  type LlmRequest,
  type LlmResponse,
} from '@google/adk'
import { type Adapter, answerTo, childTask, delegateText, type PeerOptions } from '../peer.ts'

class ScriptedLlm extends BaseLlm {
  private readonly options: PeerOptions

  constructor(options: PeerOptions) {
    super({ model: 'scripted' })
    this.options = options
  }

  override async *generateContentAsync({
    contents,
  }: LlmRequest): AsyncGenerator<LlmResponse, void> {
    const part = contents.at(-1)?.parts?.[0]
    const answer = await answerTo(part?.text, this.options)
    const parts =
      answer.kind === 'calls'
        ? answer.ids.map((id) => ({
            functionCall: { id, name: 'subagent', args: { request: childTask } },
          }))
        : [{ text: answer.pieces.join('') }]
    yield { content: { role: 'model', parts }, turnComplete: true }
  }

  override connect(): never {
    throw new Error('there is no live connection')
  }
}

export const adapter: Adapter = {
  title: 'Google ADK',
  package: '@google/adk',
  withoutDeltas: 'an agent that is a tool gives its text when it is complete',
  create: async (options) => {
    const model = new ScriptedLlm(options)
    const child = new LlmAgent({ name: 'subagent', description: 'Delegates a task.', model })
    const tools = [new AgentTool({ agent: child })]
    const agent = new LlmAgent({ name: 'parent', model, tools })
    return {
      delegate: async (calls) => {
        const runner = new InMemoryRunner({ agent, appName: 'bench' })
        const userId = 'user'
        const { id: sessionId } = await runner.sessionService.createSession({
          appName: 'bench',
          userId,
        })
        const newMessage = { role: 'user', parts: [{ text: delegateText(calls) }] }
        let text = ''
        for await (const { content } of runner.runAsync({ userId, sessionId, newMessage })) {
          text = content?.parts?.[0]?.text ?? text
        }
        return text
      },
    }
  },
}
