/** The executor: limits and lifecycle of the commands that run. */
import { accessSync, constants, existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import {
  BashError,
  type BashExecutor,
  type BashRequest,
  type BashResult,
} from '@deepseek-ai/dsh-bash'
import { cleanEnvironment } from '@deepseek-ai/dsh-process'
import { runCommand } from './command.ts'
import type { Config } from './config.ts'
import { Output, OutputFiles } from './output.ts'

/** Runs each command in a shell of its own. */
export class LocalBash implements BashExecutor {
  readonly name = 'bash-local'
  readonly timeoutMs: number
  readonly maxTimeoutMs: number
  private readonly shell: string
  private readonly files: OutputFiles
  private readonly running = new Set<Promise<BashResult>>()
  private readonly unloading = new AbortController()
  private disposing: Promise<void> | undefined
  private readonly config: Config
  private readonly warn: (message: string) => void

  /** @throws BashError `INVALID_CONFIG`. */
  constructor(config: Config, warn: (message: string) => void) {
    this.config = config
    this.warn = warn
    this.timeoutMs = config.timeoutMs
    this.maxTimeoutMs = config.maxTimeoutMs
    this.shell = config.shell ?? (existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh')
    this.files = new OutputFiles(config.maxFileBytes)
    checkConfig(config, this.shell)
  }

  async execute(request: BashRequest): Promise<BashResult> {
    const { timeoutMs = this.timeoutMs, signal } = request
    if (this.disposing !== undefined) {
      throw new BashError(
        'EXECUTOR_DISPOSED',
        'bash-local is unloaded; ask the context for ctx.bash',
      )
    }
    if (signal?.aborted === true) return abortedAtOnce
    const running = this.run(request, timeoutMs)
    this.running.add(running)
    try {
      return await running
    } finally {
      this.running.delete(running)
    }
  }

  /** Aborts what runs, waits until it is gone, and deletes the output files. */
  dispose(): Promise<void> {
    this.disposing ??= this.disposeOnce()
    return this.disposing
  }

  private async disposeOnce(): Promise<void> {
    this.unloading.abort()
    await Promise.allSettled(this.running)
    this.files.deleteAll()
  }

  private run(request: BashRequest, timeoutMs: number): Promise<BashResult> {
    const { command, cwd, env, signal, onOutput } = request
    return runCommand({
      shell: this.shell,
      command,
      cwd,
      env: cleanEnvironment({ ...this.config.env, ...env }),
      timeoutMs,
      graceMs: this.config.graceMs,
      signals: signal === undefined ? [this.unloading.signal] : [signal, this.unloading.signal],
      output: new Output(this.config.maxOutputBytes, this.files),
      onOutput,
      warn: this.warn,
    })
  }
}

const abortedAtOnce: BashResult = {
  output: '',
  isTruncated: false,
  isTimedOut: false,
  isAborted: true,
  durationMs: 0,
}

function checkConfig(config: Config, shell: string): void {
  const { timeoutMs, maxTimeoutMs, maxOutputBytes, maxFileBytes } = config
  if (timeoutMs > maxTimeoutMs) {
    throw new BashError(
      'INVALID_CONFIG',
      `timeoutMs "${timeoutMs}" must not be above maxTimeoutMs "${maxTimeoutMs}"`,
    )
  }
  if (maxFileBytes < maxOutputBytes) {
    throw new BashError(
      'INVALID_CONFIG',
      `maxFileBytes "${maxFileBytes}" must not be below maxOutputBytes "${maxOutputBytes}"`,
    )
  }
  if (!isAbsolute(shell) || !isExecutable(shell)) {
    throw new BashError('INVALID_CONFIG', `shell "${shell}" must be the absolute path of a program`)
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // Any reason means no.
    return false
  }
}
