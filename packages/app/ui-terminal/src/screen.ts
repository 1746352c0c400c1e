/** The terminal as two streams on one surface: answers on stdout, progress on stderr. */
import { type AppStreams, sanitize } from '@deepseek-ai/dsh-app'
import { paint, type Style } from './text.ts'

const defaultColumns = 80

/** Writes answers and progress so that neither spoils the other; live lines only where they can move. */
export class Screen {
  /** Whether lines can be redrawn. */
  readonly isLive: boolean
  private readonly stdout: NodeJS.WriteStream
  private readonly stderr: NodeJS.WriteStream
  /** Whether what was last written to stdout ended its line. */
  private isAtLineStart = true
  private liveLines = 0

  constructor({ stdout, stderr }: Pick<AppStreams, 'stdout' | 'stderr'>) {
    this.stdout = stdout
    this.stderr = stderr
    this.isLive = stderr.isTTY && process.env.TERM !== 'dumb'
  }

  get columns(): number {
    // A terminal that does not know its size says 0.
    return this.stderr.columns || defaultColumns
  }

  /** A piece of an answer; verbatim unless a terminal reads it. */
  text(piece: string): void {
    const text = this.stdout.isTTY ? sanitize(piece) : piece
    if (text === '') return
    this.erase()
    this.stdout.write(text)
    this.isAtLineStart = text.endsWith('\n')
  }

  /** Ends the line that an answer left open. */
  endText(): void {
    if (!this.isAtLineStart) this.text('\n')
  }

  /** A line of progress; the caller has made it harmless. */
  line(text: string, style?: Style): void {
    this.erase()
    this.separate()
    this.stderr.write(`${style === undefined ? text : paint(this.stderr, style, text)}\n`)
  }

  /** Replaces the lines at the bottom; each must fit its row. */
  live(lines: readonly string[]): void {
    if (!this.isLive) return
    this.erase()
    if (lines.length === 0) return
    this.separate()
    this.stderr.write(lines.map((line) => `${paint(this.stderr, 'dim', line)}\n`).join(''))
    this.liveLines = lines.length
  }

  private erase(): void {
    if (this.liveLines > 0) this.stderr.write(`\u001b[${this.liveLines}A\u001b[J`)
    this.liveLines = 0
  }

  /** Progress must not continue the line of an answer on the same terminal. */
  private separate(): void {
    if (this.isAtLineStart || !this.stdout.isTTY || !this.stderr.isTTY) return
    this.stdout.write('\n')
    this.isAtLineStart = true
  }
}
