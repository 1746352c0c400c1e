/** What a program has said so far, line by line. */
import type { AssistantContent } from '@deepseek-ai/dsh-llm'
import type { SubagentActivity, SubagentStopReason } from '@deepseek-ai/dsh-subagent'
import { z } from 'zod'

const lineSchema = z.union([
  /** A piece of a message. */
  z.object({ text: z.string() }),
  /** The program uses a tool: what it says next is another message. */
  z.object({ tool: z.string() }),
  /** It did not finish. */
  z.object({ stop: z.enum(['max-tokens', 'refusal']) }),
])

/** Turns lines into activities, and keeps the last message that has text. */
export class Answer {
  stopReason: SubagentStopReason = 'completed'
  private readonly report: (activity: SubagentActivity) => void
  private message = ''
  private earlier = ''
  private calls = 0

  constructor(report: (activity: SubagentActivity) => void) {
    this.report = report
  }

  get output(): AssistantContent {
    const text = this.message.trim() === '' ? this.earlier : this.message
    return text === '' ? [] : [{ type: 'text', text }]
  }

  /** @throws Error when the line is none of the protocol. */
  hear(line: string): void {
    const said = parse(line)
    if ('text' in said) {
      this.message += said.text
      this.report({ kind: 'text', text: said.text })
    } else if ('tool' in said) {
      this.endMessage()
      const call = { callId: `${(this.calls += 1)}`, name: said.tool }
      this.report({ kind: 'tool-start', ...call })
      this.report({ kind: 'tool-end', ...call, isError: false })
    } else {
      this.stopReason = said.stop
    }
  }

  private endMessage(): void {
    if (this.message.trim() !== '') this.earlier = this.message
    this.message = ''
  }
}

function parse(line: string): z.infer<typeof lineSchema> {
  try {
    return lineSchema.parse(JSON.parse(line))
  } catch (error) {
    // The line itself is left out: a diagnostic never quotes the child.
    const expected = '{"text":…}, {"tool":…} or {"stop":"max-tokens" or "refusal"}'
    throw new Error(`the program wrote a line that is not ${expected}`, { cause: error })
  }
}
