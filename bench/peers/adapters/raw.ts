/** No harness at all: the same messages handed from function to function, which is the physical limit. */
import {
  type Adapter,
  answerTo,
  childTask,
  delegateText,
  pastOf,
  pastTurn,
  type PeerOptions,
} from '../peer.ts'

type Message = { readonly role: string; readonly content: unknown }

async function* model(
  messages: readonly Message[],
  options: PeerOptions,
): AsyncGenerator<string | readonly string[]> {
  const { role, content } = messages.at(-1) ?? { role: 'user', content: '' }
  const answer = await answerTo(role === 'user' ? String(content) : undefined, options)
  if (answer.kind === 'calls') yield answer.ids
  else yield* answer.pieces
}

interface Task {
  readonly prompt: string
  readonly past?: readonly Message[]
  /** What a child starts with. */
  readonly childPast?: readonly Message[]
  readonly isChild?: boolean
}

async function turn(task: Task, options: PeerOptions): Promise<string> {
  const { prompt, past = [], childPast = [], isChild = false } = task
  const child: Task = { prompt: childTask, past: childPast, isChild: true }
  const messages: Message[] = [...past, { role: 'user', content: prompt }]
  while (true) {
    let text = ''
    let calls: readonly string[] = []
    for await (const piece of model(messages, options)) {
      if (typeof piece === 'string') {
        text += piece
        if (isChild) options.onDelta()
      } else calls = piece
    }
    messages.push({ role: 'assistant', content: text || calls })
    if (calls.length === 0) return text
    const results = await Promise.all(calls.map(() => turn(child, options)))
    for (const content of results) messages.push({ role: 'tool', content })
  }
}

export const adapter: Adapter = {
  title: 'raw promises',
  create: async (options) => ({
    delegate: (calls) => turn({ prompt: delegateText(calls) }, options),
    grow: async (turns) => {
      const past = pastOf<Message>(turns, () => [
        { role: 'user', content: pastTurn.user },
        { role: 'assistant', content: pastTurn.assistant },
      ])
      const prompt = delegateText(1)
      return {
        spawn: () => turn({ prompt, past }, options),
        fork: () => turn({ prompt, past, childPast: past }, options),
      }
    },
  }),
}
