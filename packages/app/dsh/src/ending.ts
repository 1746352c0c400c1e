/** How the process comes to its end: signals, a reader that has gone, an error that nobody caught. */
import { type AppStreams, errorText, isDebugging, sanitize, stackOf } from '@deepseek-ai/dsh-app'

const signalCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
/** What a shell reports of a process whose reader has gone. */
const brokenPipeCode = 141
const aliveMs = 2 ** 30

/**
 * Decides the exit code of a process that is asked to end. `dispose()` lets go of the process;
 * `settle()` only of the event loop, for one that is about to exit.
 */
export class Ending {
  /** Present once the end was asked for. */
  code: number | undefined
  /** Takes SIGINT; gives whether it does. */
  onInterrupt: () => boolean = () => false
  private readonly controller = new AbortController()
  private readonly streams: AppStreams
  private readonly alive: NodeJS.Timeout
  private readonly undo: (() => void)[] = []

  constructor(streams: AppStreams) {
    this.streams = streams
    // An agent that waits for something without a handle must not end the process.
    this.alive = setInterval(() => {}, aliveMs)
    for (const [name, code] of Object.entries(signalCodes)) {
      this.listen(process, name, () => this.onSignal(name, code))
    }
    this.listen(process, 'unhandledRejection', (error) => this.report(error))
    this.listen(process, 'uncaughtException', (error) => {
      this.report(error)
      this.end(1)
    })
    this.listen(streams.stdout, 'error', (error) => this.onStdoutError(error))
    // Whoever closed stderr does not want to read this either.
    this.listen(streams.stderr, 'error', () => {})
  }

  /** Aborted when the end is asked for. */
  get signal(): AbortSignal {
    return this.controller.signal
  }

  /** Asks for the end; the first code stays. */
  end(code: number): void {
    this.code ??= code
    this.controller.abort()
  }

  /** The exit code is known: what still happens is told and changes nothing, and a signal exits at once. */
  settle(code: number): void {
    this.code = code
    clearInterval(this.alive)
  }

  dispose(): void {
    clearInterval(this.alive)
    for (const undo of this.undo.splice(0)) undo()
  }

  private onSignal(name: string, code: number): void {
    if (this.code !== undefined) process.exit(this.code)
    if (name === 'SIGINT' && this.onInterrupt()) return
    this.end(code)
  }

  private onStdoutError(error: unknown): void {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return this.end(brokenPipeCode)
    this.report(error)
    this.end(1)
  }

  private report(error: unknown): void {
    const text = isDebugging() ? stackOf(error) : errorText(error)
    this.streams.stderr.write(`dsh: an error that nobody caught: ${sanitize(text)}\n`)
  }

  private listen(
    emitter: NodeJS.EventEmitter,
    event: string,
    listener: (value: unknown) => void,
  ): void {
    emitter.on(event, listener)
    this.undo.push(() => emitter.off(event, listener))
  }
}
