/** Google ADK: the child is an agent that the parent has as a tool. */
import {
  AgentTool,
  BaseLlm,
  createEvent,
  InMemoryRunner,
  LlmAgent,
  type Event,
  type LlmRequest,
  type LlmResponse,
} from '@google/adk'
import {
  type Adapter,
  answerTo,
  childTask,
  delegateText,
  pastOf,
  pastTurn,
  type PeerOptions,
} from '../peer.ts'

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

function pastEvents(): Event[] {
  return [eventOf('user', 'user', pastTurn.user), eventOf('parent', 'model', pastTurn.assistant)]
}

function eventOf(author: string, role: string, text: string): Event {
  return createEvent({ author, content: { role, parts: [{ text }] } })
}

export const adapter: Adapter = {
  title: 'Google ADK',
  package: '@google/adk',
  withoutDeltas: 'an agent that is a tool gives its text when it is complete',
  withoutFork: 'an agent that is a tool starts with a session of its own',
  create: async (options) => {
    const model = new ScriptedLlm(options)
    const child = new LlmAgent({ name: 'subagent', description: 'Delegates a task.', model })
    const tools = [new AgentTool({ agent: child })]
    const agent = new LlmAgent({ name: 'parent', model, tools })
    /** @param past the turns that the session begins with: to take them one by one would take minutes. */
    const open = async (past = 0): Promise<(text: string) => Promise<string>> => {
      const runner = new InMemoryRunner({ agent, appName: 'bench' })
      const { sessionService } = runner
      const userId = 'user'
      const session = await sessionService.createSession({ appName: 'bench', userId })
      const { id: sessionId } = session
      for (const event of pastOf(past, pastEvents)) {
        await sessionService.appendEvent({ session, event })
      }
      return async (said) => {
        const newMessage = { role: 'user', parts: [{ text: said }] }
        let text = ''
        for await (const { content } of runner.runAsync({ userId, sessionId, newMessage })) {
          text = content?.parts?.[0]?.text ?? text
        }
        return text
      }
    }
    return {
      delegate: async (calls) => (await open())(delegateText(calls)),
      grow: async (turns) => {
        const send = await open(turns)
        return { spawn: () => send(delegateText(1)) }
      },
    }
  },
}
