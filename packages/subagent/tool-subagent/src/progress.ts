/** Tells in one line what a running child is doing. */
import type { SubagentActivity } from '@deepseek-ai/dsh-subagent'
import { oneLine } from './bound.ts'

const maxLineLength = 80
/** Enough of the streamed text to hold its last line. */
const keptLength = 400

/** Follows one run. */
export class ProgressLine {
  private text = ''

  /** @returns the line to show from now on; absent when the activity changes nothing. */
  push(activity: SubagentActivity): string | undefined {
    switch (activity.kind) {
      case 'text':
        this.text = `${this.text}${activity.text}`.slice(-keptLength)
        return lastLineOf(this.text)
      case 'tool-start': {
        const { name, title } = activity
        this.text = ''
        return oneLine(title === undefined ? name : `${name}: ${title}`, maxLineLength)
      }
      case 'plan':
        return lastLineOf(activity.text)
      case 'reasoning':
      case 'tool-end':
      case 'usage':
        return undefined
    }
  }
}

function lastLineOf(text: string): string | undefined {
  const line = text.trimEnd().split('\n').at(-1) ?? ''
  return line === '' ? undefined : oneLine(line, maxLineLength)
}
