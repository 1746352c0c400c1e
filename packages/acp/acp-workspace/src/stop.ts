/** Why and when a command has to end, and how long its client may take for that. */

export interface StopOptions {
  /** Time limit of the command. */
  readonly timeoutMs: number
  /** How long everything may take after the stop. */
  readonly graceMs: number
  /** Each of them stops the command. */
  readonly signals: readonly AbortSignal[]
}

/** Its owner calls `dispose` on every path. */
export class Stop {
  /** What came first; absent while the command may run. */
  cause: 'timeout' | 'abort' | undefined
  private readonly asking = new AbortController()
  private readonly ending = new AbortController()
  private readonly options: StopOptions
  private timer: NodeJS.Timeout
  private readonly onAbort = (): void => this.stop('abort')

  constructor(options: StopOptions) {
    this.options = options
    this.timer = setTimeout(() => this.stop('timeout'), options.timeoutMs)
    for (const signal of options.signals) signal.addEventListener('abort', this.onAbort)
  }

  /** Aborted when the command has to end. */
  get asked(): AbortSignal {
    return this.asking.signal
  }

  /** Aborted when nothing is waited for any more. */
  get over(): AbortSignal {
    return this.ending.signal
  }

  dispose(): void {
    clearTimeout(this.timer)
    for (const signal of this.options.signals) signal.removeEventListener('abort', this.onAbort)
  }

  private stop(cause: 'timeout' | 'abort'): void {
    if (this.cause !== undefined) return
    this.cause = cause
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.ending.abort(), this.options.graceMs)
    this.asking.abort()
  }
}

/** Waits for a promise until the signal is aborted; absent when that came first. */
export async function unless<T>(signal: AbortSignal, promise: Promise<T>): Promise<T | undefined> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>()
  const onAbort = (): void => resolve(undefined)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort)
  try {
    return await Promise.race([aborted, promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
    // Whoever went away is not told of a failure that comes later.
    promise.catch(() => {})
  }
}
