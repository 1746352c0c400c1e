/** What a model sees of a session event. */
import type { Message } from '@deepseek-ai/dsh-llm'
import type { SessionEvent } from './types.ts'

/** The message that an event adds to the conversation; absent for most types. */
export function messageOfEvent(event: SessionEvent): Message | undefined {
  switch (event.type) {
    case 'user/message':
    case 'context/message':
      return { role: 'user', content: event.data.content }
    case 'assistant/message':
      // A reply that was cut before its first block: providers refuse empty messages.
      return event.data.content.length === 0
        ? undefined
        : { role: 'assistant', content: event.data.content }
    case 'tool/result': {
      const { callId, name, content, isError } = event.data
      return { role: 'tool', content: [{ type: 'tool-result', callId, name, content, isError }] }
    }
    case 'turn/start':
    case 'turn/end':
    case 'step/start':
    case 'step/end':
    case 'tool/call':
      return undefined
  }
}
