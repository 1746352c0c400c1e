/** The vocabulary of the bash seam. */
import type { SessionId } from '@deepseek-ai/dsh-session'

/** Who asks for a command. */
export interface BashCaller {
  readonly sessionId: SessionId
  /** The tool call of that session's agent. */
  readonly callId?: string
}

export interface BashRequest {
  /** Handed to the shell as it is. */
  readonly command: string
  /** Absolute path of a folder. */
  readonly cwd: string
  /** Time from the start until command and processes are ended; absent: the executor's `timeoutMs`. */
  readonly timeoutMs?: number
  /** Ends command and processes; when it is aborted already, nothing starts. */
  readonly signal?: AbortSignal
  /** Added to the executor's environment, over which it wins. */
  readonly env?: Readonly<Record<string, string>>
  /** Called with each piece of output as it comes; must not throw. */
  readonly onOutput?: (text: string) => void
  /** Listeners of `bash/execute` may choose by it where the command runs. */
  readonly caller?: BashCaller
}

/** A request as listeners of `bash/execute` see it. */
export interface TimedBashRequest extends BashRequest {
  readonly timeoutMs: number
}

/** How a command ended. `exitCode` and `signal` tell what became of the shell. */
export interface BashResult {
  readonly exitCode?: number
  readonly signal?: string
  /** stdout and stderr as they were written; in place of a middle that is cut out stands a note. */
  readonly output: string
  /** Whether `output` lacks something. */
  readonly isTruncated: boolean
  /** A file with the whole output, or as much as the executor keeps; gone when the executor is. */
  readonly outputPath?: string
  readonly isTimedOut: boolean
  /** The signal, or the end of the executor, came before the end of the command. */
  readonly isAborted: boolean
  readonly durationMs: number
}

/** Runs shell commands. Nothing that a command started is left when its result is there. */
export interface BashExecutor {
  /** For messages: the name of the plugin. */
  readonly name: string
  /** The time limit of a request that names none. */
  readonly timeoutMs: number
  /** The longest time limit that a request may name. */
  readonly maxTimeoutMs: number
  /**
   * Runs one command; any number may run at the same time. Rejects when nothing was run, or when
   * nobody can tell how it ended.
   * @throws BashError `INVALID_TIMEOUT`, `EXECUTOR_DISPOSED`; an executor's own error when it could not start.
   */
  execute(request: BashRequest): Promise<BashResult>
}
