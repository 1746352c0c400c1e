/** What plugins log, in short lines on stderr: stdout belongs to the front end. */
import { type Exporter, Logger, type Message } from '@deepseek-ai/cordis'
import { errorText } from './error-text.ts'

const warnLevel = 2
const debugLevel = 3
/** The logger whose information is for everybody. */
export const ownName = 'dsh'

/** Whether stack traces and all that is logged are wanted. */
export function isDebugging(): boolean {
  return Boolean(process.env.DSH_DEBUG)
}

/** Prints warnings and errors, in full only with `DSH_DEBUG`. */
export class StderrLog implements Exporter {
  readonly levels = { default: isDebugging() ? debugLevel : warnLevel }
  private readonly write: (line: string) => void
  private batch: Message[] = []
  private held: Message[] | undefined

  constructor(write: (line: string) => void) {
    this.write = write
  }

  export(message: Message): void {
    if (message.type === 'info' && message.name !== ownName && !isDebugging()) return
    if (this.held !== undefined && !isDebugging()) this.held.push(message)
    else this.enqueue(message)
  }

  /** Keeps back what is logged until {@link release}. */
  hold(): void {
    this.held ??= []
  }

  /** Prints what was kept back, or drops it. */
  release(isWanted: boolean): void {
    const held = this.held ?? []
    this.held = undefined
    if (isWanted) for (const message of held) this.enqueue(message)
    this.flush()
  }

  /** Prints what is logged of this tick. */
  flush(): void {
    const batch = this.batch.splice(0)
    // Cordis logs the cause of an error first and on its own.
    const causes = new Set(
      batch.map(({ args }) => (args[0] instanceof Error ? args[0].cause : undefined)),
    )
    for (const message of batch) {
      if (message.args.length !== 1 || !causes.has(message.args[0]))
        this.write(this.format(message))
    }
  }

  private enqueue(message: Message): void {
    if (this.batch.push(message) === 1) queueMicrotask(() => this.flush())
  }

  private format(message: Message): string {
    const [first] = message.args as unknown[]
    const text =
      first instanceof Error && !isDebugging() ? errorText(first) : Logger.format(this, message)
    return `[${message.type}] ${message.name}: ${text}`
  }
}
