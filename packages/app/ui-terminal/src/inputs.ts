/** What a person enters, line by line; a paste of several lines is one input, once it is entered. */
import type { Interface } from 'node:readline'
import { PassThrough } from 'node:stream'
import type { AppStreams } from '@deepseek-ai/dsh-app'

/** Asks a terminal to mark what is pasted, and to do so no longer. Source: xterm, "Bracketed Paste Mode". */
const pasteMarks = { on: '\u001b[?2004h', off: '\u001b[?2004l' }

/** The inputs of a reader of lines, in order, to the end of its input. */
export class Inputs implements AsyncIterable<string> {
  private readonly lines: Interface
  private readonly streams: AppStreams
  private readonly entered = new PassThrough({ objectMode: true })
  /** Lines of a paste that is not entered yet. */
  private pasted: string[] = []
  private isPasting = false

  constructor(lines: Interface, streams: AppStreams) {
    this.lines = lines
    this.streams = streams
    lines.on('line', (line) => this.add(line))
    lines.on('close', () => this.entered.end())
    if (!lines.terminal) return
    streams.stdin.on('keypress', this.onKey)
    streams.stdout.write(pasteMarks.on)
  }

  /** Whether something is typed, or pasted, that is not entered. */
  get hasDraft(): boolean {
    return this.isPasting || this.pasted.length > 0 || this.lines.line !== ''
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return this.entered[Symbol.asyncIterator]() as AsyncIterator<string>
  }

  /** Takes back what is not entered; also ends a paste whose end never came. */
  dropDraft(): void {
    this.pasted = []
    this.isPasting = false
    this.lines.write(null, { ctrl: true, name: 'u' })
  }

  /** Leaves the terminal as it was. */
  dispose(): void {
    if (!this.lines.terminal) return
    this.streams.stdin.off('keypress', this.onKey)
    this.streams.stdout.write(pasteMarks.off)
  }

  private add(line: string): void {
    this.pasted.push(line)
    if (this.isPasting) return
    this.entered.write(this.pasted.join('\n'))
    this.pasted = []
  }

  private readonly onKey = (_text: unknown, { name }: { readonly name?: string }): void => {
    if (name === 'paste-start') this.isPasting = true
    else if (name === 'paste-end') this.isPasting = false
  }
}
