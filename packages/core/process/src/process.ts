/** Starts a child process, and ends it together with all that came of it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { Readable, type Writable } from 'node:stream'
import { within } from '@deepseek-ai/dsh-llm'
import { marksVariable } from './environment.ts'
import { checkCwd, type ProcessError, startError } from './errors.ts'
import { atHostExit, type Guard, startGuard } from './host.ts'
import { ProcessTree } from './tree.ts'

/** How long processes that a process leaves behind may take to end by themselves. */
const lingerMs = 200
/** How long killed processes may take to be gone. */
const killWaitMs = 5000
/** How long, after the host's death, a child that reads its stdin may take to end by itself. */
const orphanGraceS = 2

export interface StartOptions {
  /** A path, or a name that is looked up on the PATH of `env`. */
  readonly command: string
  readonly args?: readonly string[]
  readonly cwd: string
  /** The whole environment, from {@link cleanEnvironment}. */
  readonly env: Readonly<Record<string, string>>
  /** Default `ignore`: the child reads an end at once. */
  readonly stdin?: 'pipe' | 'ignore'
  /** Whether a small shell waits beside the child to kill its tree when the host is killed; default true. */
  readonly guard?: boolean
}

/** How a process ended, or why it never ran. */
export type ProcessExit =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'killed'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'failed'; readonly error: ProcessError }

export interface StopOptions {
  /** How long the process may take to end after its stdin was closed, in ms; absent: stdin is not closed first. */
  readonly eofGraceMs?: number
  /** How long it may take to end after SIGTERM, in ms. */
  readonly termGraceMs: number
  /**
   * Who gets the SIGTERM and its grace. Default `process`, for one that cleans up after itself; a
   * shell does not pass the signal on: there it is the whole `tree`.
   */
  readonly target?: 'process' | 'tree'
}

/** Starts a process in a group of its own. Never throws: a failure to start is the process's exit. */
export function startProcess(options: StartOptions): CareProcess {
  return new CareProcess(options)
}

/** A child process under care. Its owner calls `stop` on every path. */
export class CareProcess {
  readonly pid: number | undefined
  /** Present when it was asked for as a pipe. Its errors show as the exit. */
  readonly stdin: Writable | undefined
  readonly stdout: Readable
  readonly stderr: Readable
  /** Settles when the process itself has ended, or could not be started; never rejects. */
  readonly exited: Promise<ProcessExit>
  /** Settles when the process has ended and its output, which others may hold open, too. */
  readonly closed: Promise<void>
  /**
   * Settles when the whole tree is seen to be gone; never rejects. What the process leaves behind
   * when it exits by itself is killed as soon as its output ends, at the latest after 200 ms.
   * The pids are those that could not be killed in 5 s.
   */
  readonly gone: Promise<readonly number[]>
  private readonly child: ChildProcess | undefined
  private readonly tree: ProcessTree | undefined
  private readonly stopAsked = Promise.withResolvers<void>()
  private stopOptions: StopOptions | undefined
  private stopping: Promise<readonly number[]> | undefined

  constructor(options: StartOptions) {
    const mark = randomBytes(12).toString('hex')
    const { guard, child } = launch(options, mark)
    this.child = child instanceof Error ? undefined : child
    this.pid = this.child?.pid
    this.stdin = this.child?.stdin ?? undefined
    this.stdout = this.child?.stdout ?? Readable.from([])
    this.stderr = this.child?.stderr ?? Readable.from([])
    // A reader that is gone shows as the exit.
    this.stdin?.on('error', () => {})
    if (this.pid !== undefined) {
      this.tree = new ProcessTree({ pid: this.pid, mark })
      guard?.watch(this.pid, options.stdin === 'pipe' ? orphanGraceS : 0)
    }
    this.exited = child instanceof Error ? failed(options, child) : this.watchExit(child, options)
    this.closed = this.watchClose()
    this.gone = this.care(guard)
  }

  /**
   * Ends the process and its tree: end of stdin, SIGTERM, SIGKILL, each after the grace of the one
   * before; then closes the output. The first call's options count.
   * @returns the same promise for every call: the pids that could not be killed.
   */
  stop(options: StopOptions): Promise<readonly number[]> {
    this.stopping ??= this.stopOnce(options)
    return this.stopping
  }

  private async stopOnce(options: StopOptions): Promise<readonly number[]> {
    this.stopOptions = options
    this.stopAsked.resolve()
    const survivors = await this.gone
    this.stdin?.destroy()
    this.stdout.destroy()
    this.stderr.destroy()
    return survivors
  }

  private watchExit(child: ChildProcess, options: StartOptions): Promise<ProcessExit> {
    return new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        if (this.tree !== undefined) this.tree.isRootGone = true
        if (signal !== null) resolve({ kind: 'killed', signal })
        else resolve({ kind: 'exited', code: code ?? 0 })
      })
      child.on('error', (error) => {
        // Also emitted when a signal may not be sent to a process that runs.
        if (child.pid === undefined) resolve({ kind: 'failed', error: startError(options, error) })
      })
    })
  }

  private async watchClose(): Promise<void> {
    const { child } = this
    const closed = new Promise<unknown>((resolve) => child?.once('close', resolve))
    const exit = await this.exited
    if (exit.kind !== 'failed') await closed
  }

  private async care(guard: Guard | undefined): Promise<readonly number[]> {
    const { tree } = this
    const forget = tree === undefined ? undefined : atHostExit(() => tree.killNow())
    try {
      return tree === undefined ? [] : await this.end(tree)
    } finally {
      forget?.()
      await guard?.end()
    }
  }

  private async end(tree: ProcessTree): Promise<readonly number[]> {
    await Promise.race([this.exited, this.stopAsked.promise])
    if (this.stopOptions === undefined) await within(lingerMs, this.closed)
    else await this.askToEnd(tree, this.stopOptions)
    return tree.kill(killWaitMs)
  }

  private async askToEnd(tree: ProcessTree, options: StopOptions): Promise<void> {
    const { eofGraceMs, termGraceMs, target = 'process' } = options
    // Descendants are found by their parents, so look before a parent is gone.
    await tree.look()
    if (eofGraceMs !== undefined) {
      this.stdin?.end()
      if (await within(eofGraceMs, this.exited)) return
      await tree.look()
    }
    if (target === 'tree') {
      await tree.terminate()
      await tree.isGoneWithin(termGraceMs)
    } else {
      this.child?.kill('SIGTERM')
      await within(termGraceMs, this.exited)
    }
  }
}

interface Launch {
  readonly guard: Guard | undefined
  readonly child: ChildProcess | Error
}

/** The guard comes first: there is no moment in which the child has none. */
function launch(options: StartOptions, mark: string): Launch {
  const { command, args = [], cwd, env, stdin = 'ignore' } = options
  const marks = env[marksVariable]
  let guard: Guard | undefined
  try {
    checkCwd(cwd)
    if (options.guard !== false) guard = startGuard(mark, env['PATH'])
    const child = spawn(command, args, {
      cwd,
      detached: true,
      env: { ...env, [marksVariable]: marks === undefined ? mark : `${marks},${mark}` },
      stdio: [stdin, 'pipe', 'pipe'],
    })
    return { guard, child }
  } catch (error) {
    return { guard, child: error instanceof Error ? error : new Error(String(error)) }
  }
}

async function failed(options: StartOptions, cause: Error): Promise<ProcessExit> {
  return { kind: 'failed', error: startError(options, cause) }
}
