/** A scripted model of the AI SDK's kind, which Mastra takes too. */
import { answerTo, childTask, pastOf, pastTurn, type PeerOptions } from '../peer.ts'

interface Prompt {
  readonly prompt: readonly { readonly role: string; readonly content: unknown }[]
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

function lastOf({ prompt }: Prompt): string | undefined {
  const last = prompt.at(-1)
  if (last?.role !== 'user') return undefined
  const [block] = last.content as readonly { readonly text: string }[]
  return block?.text
}

function callOf(toolCallId: string, toolName: string): object {
  return { type: 'tool-call', toolCallId, toolName, input: JSON.stringify({ prompt: childTask }) }
}

interface Said<Role extends string> {
  readonly role: Role
  readonly content: string
}

type PastMessage = Said<'user'> | Said<'assistant'>

/** What a parent has behind it, as the AI SDK and Mastra take it. */
export function pastMessages(turns: number): PastMessage[] {
  return pastOf(turns, () => [
    { role: 'user', content: pastTurn.user },
    { role: 'assistant', content: pastTurn.assistant },
  ])
}

/** Its type is the SDK's own, which is not named here so that no version of it is needed. */
export function scriptedAiModel(options: PeerOptions, toolName: string): never {
  const model = {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    doGenerate: async (request: Prompt) => {
      const answer = await answerTo(lastOf(request), options)
      return answer.kind === 'calls'
        ? {
            content: answer.ids.map((id) => callOf(id, toolName)),
            finishReason: { unified: 'tool-calls', raw: undefined },
            usage,
            warnings: [],
          }
        : {
            content: [{ type: 'text', text: answer.pieces.join('') }],
            finishReason: { unified: 'stop', raw: undefined },
            usage,
            warnings: [],
          }
    },
    doStream: async (request: Prompt) => {
      const answer = await answerTo(lastOf(request), options)
      const parts: object[] = [{ type: 'stream-start', warnings: [] }]
      if (answer.kind === 'calls') {
        parts.push(...answer.ids.map((id) => callOf(id, toolName)))
      } else {
        parts.push({ type: 'text-start', id: '0' })
        for (const delta of answer.pieces) parts.push({ type: 'text-delta', id: '0', delta })
        parts.push({ type: 'text-end', id: '0' })
      }
      const unified = answer.kind === 'calls' ? 'tool-calls' : 'stop'
      parts.push({ type: 'finish', usage, finishReason: { unified, raw: undefined } })
      return { stream: streamOf(parts) }
    },
  }
  return model as never
}

/** As `convertArrayToReadableStream` of the SDK does it: a piece for each pull. */
function streamOf(parts: readonly object[]): ReadableStream<object> {
  let index = 0
  return new ReadableStream({
    pull(controller) {
      const part = parts[index]
      index += 1
      if (part === undefined) controller.close()
      else controller.enqueue(part)
    },
  })
}
