/** One command, from its start to the end of all its processes. */
import type { BashResult } from '@deepseek-ai/dsh-bash'
import { within } from '@deepseek-ai/dsh-llm'
import { type ProcessExit, startProcess } from '@deepseek-ai/dsh-process'
import type { Output } from './output.ts'

/** How long output may take to arrive when every process that could write it is gone. */
const drainMs = 500

export interface CommandSpec {
  readonly shell: string
  readonly command: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly graceMs: number
  /** Each of them aborts the command. */
  readonly signals: readonly AbortSignal[]
  readonly output: Output
  readonly onOutput: ((text: string) => void) | undefined
  readonly warn: (message: string) => void
}

/** Runs a command; whatever it leaves behind is gone when this settles. @throws ProcessError. */
export async function runCommand(spec: CommandSpec): Promise<BashResult> {
  const { output, signals, timeoutMs, graceMs } = spec
  const startedAt = performance.now()
  const child = startShell(spec)
  let exit: ProcessExit | undefined
  let cause: 'timeout' | 'abort' | undefined
  const stop = (why: 'timeout' | 'abort'): void => {
    if (exit === undefined) cause ??= why
    void child.stop({ termGraceMs: graceMs, target: 'tree' })
  }
  const timer = setTimeout(stop, timeoutMs, 'timeout')
  const onAbort = (): void => stop('abort')
  for (const signal of signals) signal.addEventListener('abort', onAbort)
  const noteExit = async (): Promise<void> => {
    exit = await child.exited
    clearTimeout(timer)
  }
  void noteExit()
  try {
    const survivors = await child.gone
    if (survivors.length > 0) spec.warn(`processes ${survivors.join(', ')} could not be killed`)
    await within(drainMs, child.closed)
    return resultOf(exit, {
      ...output.end(),
      isTimedOut: cause === 'timeout',
      isAborted: cause === 'abort',
      durationMs: Math.round(performance.now() - startedAt),
    })
  } finally {
    clearTimeout(timer)
    for (const signal of signals) signal.removeEventListener('abort', onAbort)
    // Closes the pipes, which a process that could not be found may hold.
    await child.stop({ termGraceMs: 0 })
    output.end()
  }
}

function startShell({ shell, command, cwd, env, output, onOutput }: CommandSpec) {
  const child = startProcess({
    command: shell,
    // The outer shell puts stderr into the same pipe as stdout: two pipes would lose the order.
    args: ['-c', 'exec "$0" -c -- "$1" 2>&1', shell, command],
    cwd,
    env,
  })
  const decoder = new TextDecoder()
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output.push(chunk)
      onOutput?.(decoder.decode(chunk, { stream: true }))
    })
  }
  return child
}

/** An exit that is not known is that of a process which could not be killed. */
function resultOf(
  exit: ProcessExit | undefined,
  rest: Omit<BashResult, 'exitCode' | 'signal'>,
): BashResult {
  switch (exit?.kind) {
    case undefined:
      return rest
    case 'exited':
      return { exitCode: exit.code, ...rest }
    case 'killed':
      return { signal: exit.signal, ...rest }
    case 'failed':
      throw exit.error
  }
}
