/** No harness at all: the same messages handed from function to function, which is the physical limit. */
import {
  type Adapter,
  answerTo,
  childTask,
  closing,
  delegateText,
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

async function turn(prompt: string, options: PeerOptions, isChild: boolean): Promise<string> {
  const messages: Message[] = [{ role: 'user', content: prompt }]
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
    const results = await Promise.all(calls.map(() => turn(childTask, options, true)))
    for (const content of results) messages.push({ role: 'tool', content })
  }
}

export const adapter: Adapter = {
  title: 'raw promises',
  create: async (options) => ({
    delegate: async (calls) => {
      const text = await turn(delegateText(calls), options, false)
      return text === closing ? text : ''
    },
  }),
}
