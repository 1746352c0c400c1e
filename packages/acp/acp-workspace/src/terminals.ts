/** The commands that run in terminals of clients. */
import type { AcpClient } from '@deepseek-ai/dsh-acp'
import type { BashResult, TimedBashRequest } from '@deepseek-ai/dsh-bash'
import { runInTerminal } from './terminal.ts'

export interface TerminalOptions {
  /** As the client finds it. */
  readonly shell: string
  /** Variables for every command. */
  readonly env: Readonly<Record<string, string>>
  readonly maxOutputBytes: number
  readonly graceMs: number
}

/** Runs commands, and ends them with the plugin. */
export class Terminals {
  private readonly options: TerminalOptions
  private readonly warn: (message: string) => void
  private readonly running = new Set<Promise<BashResult>>()
  private readonly unloading = new AbortController()

  constructor(options: TerminalOptions, warn: (message: string) => void) {
    this.options = options
    this.warn = warn
  }

  /** @throws AcpWorkspaceError. */
  async run(client: AcpClient, request: TimedBashRequest): Promise<BashResult> {
    const { signal } = request
    if (signal?.aborted === true || this.unloading.signal.aborted) return abortedAtOnce
    const { shell, env, maxOutputBytes, graceMs } = this.options
    const signals = [this.unloading.signal, ...(signal === undefined ? [] : [signal])]
    const { warn } = this
    const spec = { client, request, shell, env, maxOutputBytes, graceMs, signals, warn }
    const running = runInTerminal(spec)
    this.running.add(running)
    try {
      return await running
    } finally {
      this.running.delete(running)
    }
  }

  /** Aborts what runs, and waits until it is over. */
  async dispose(): Promise<void> {
    this.unloading.abort()
    await Promise.allSettled(this.running)
  }
}

const abortedAtOnce: BashResult = {
  output: '',
  isTruncated: false,
  isTimedOut: false,
  isAborted: true,
  durationMs: 0,
}
