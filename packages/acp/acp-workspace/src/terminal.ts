/** One command in a terminal of the client, from its creation to its release. */
import type { AcpClient } from '@deepseek-ai/dsh-acp'
import type { BashResult, TimedBashRequest } from '@deepseek-ai/dsh-bash'
import { ByteTail } from '@deepseek-ai/dsh-process'
import { z } from 'zod'
import { ask } from './ask.ts'
import { AcpWorkspaceError } from './errors.ts'
import { Stop, unless } from './stop.ts'

export interface TerminalSpec {
  readonly client: AcpClient
  readonly request: TimedBashRequest
  readonly shell: string
  readonly env: Readonly<Record<string, string>>
  readonly maxOutputBytes: number
  /** How long the client may take for the end of a command that is stopped. */
  readonly graceMs: number
  /** Each of them aborts the command. */
  readonly signals: readonly AbortSignal[]
  readonly warn: (message: string) => void
}

const created = z.object({ terminalId: z.string() })
const exited = z.object({ exitCode: z.int().nullish(), signal: z.string().nullish() })
const shown = z.object({ output: z.string(), truncated: z.boolean().nullish() })
/** Clients answer with an empty object, or with nothing. */
const nothing = z.unknown()

type Exit = z.output<typeof exited>
type Shown = z.output<typeof shown>
type Ended = Omit<BashResult, 'isTimedOut' | 'isAborted' | 'durationMs'> & Pick<Stop, 'cause'>

/** Runs a command; its terminal is released when this settles. @throws AcpWorkspaceError. */
export async function runInTerminal(spec: TerminalSpec): Promise<BashResult> {
  const { request, signals, graceMs } = spec
  const startedAt = performance.now()
  const stop = new Stop({ timeoutMs: request.timeoutMs, graceMs, signals })
  try {
    const { cause, ...ended } = await inTerminal(spec, stop)
    return {
      ...ended,
      isTimedOut: cause === 'timeout',
      isAborted: cause === 'abort',
      durationMs: Math.round(performance.now() - startedAt),
    }
  } finally {
    stop.dispose()
  }
}

async function inTerminal(spec: TerminalSpec, stop: Stop): Promise<Ended> {
  const { client, maxOutputBytes, request } = spec
  const terminalId = await create(spec, stop)
  if (terminalId === undefined) return { output: '', isTruncated: false, cause: stop.cause }
  try {
    const { callId } = request.caller ?? {}
    const content = { type: 'terminal' as const, terminalId }
    // A client drops a terminal that it shows nowhere with its release.
    if (callId !== undefined) await unless(stop.asked, client.show(callId, content))
    const exit = await exitOf(spec, stop, terminalId)
    const { cause } = stop
    const kept = keptOf(await outputOf(spec, stop, terminalId), maxOutputBytes)
    if (kept.output !== '') request.onOutput?.(kept.output)
    return { ...codesOf(exit), ...kept, cause }
  } finally {
    await release(client, stop, terminalId)
  }
}

/** Absent when the command has to end before the client has said what its terminal is. */
async function create(spec: TerminalSpec, stop: Stop): Promise<string | undefined> {
  const { client, env, maxOutputBytes, request, shell } = spec
  const creating = ask(client, {
    method: 'terminal/create',
    params: {
      command: shell,
      // Else a command that begins with a dash would be an option of the shell.
      args: ['-c', '--', request.command],
      cwd: request.cwd,
      env: Object.entries({ ...env, ...request.env }).map(([name, value]) => ({ name, value })),
      outputByteLimit: maxOutputBytes,
    },
    answer: created,
    signal: stop.asked,
    awaitsAnswer: true,
  })
  try {
    const answer = await unless(stop.over, creating)
    if (answer === undefined) void releaseLate(client, stop, creating)
    return answer?.terminalId
  } catch (error) {
    if (stop.cause === undefined) throw error
    // The client has taken the request back, as it was asked to.
    return undefined
  }
}

async function releaseLate(
  client: AcpClient,
  stop: Stop,
  creating: Promise<z.output<typeof created>>,
): Promise<void> {
  try {
    const { terminalId } = await creating
    await release(client, stop, terminalId)
  } catch {
    // Then there is no terminal.
  }
}

/** Absent when the client did not end a command that was stopped. */
async function exitOf(
  { client, graceMs, warn }: TerminalSpec,
  stop: Stop,
  terminalId: string,
): Promise<Exit | undefined> {
  const params = { terminalId }
  const waiting = { method: 'terminal/wait_for_exit', params, answer: exited, signal: stop.over }
  const exiting = ask(client, waiting)
  const exit = await unless(stop.asked, exiting)
  if (exit !== undefined) return exit
  const killing = ask(client, { method: 'terminal/kill', params, answer: nothing })
  killing.catch(() => {})
  try {
    return await exiting
  } catch (error) {
    if (!isGone(error)) warn(`the client did not end a command within ${graceMs} ms: it may run on`)
    return undefined
  }
}

/** Absent when a command was stopped whose output the client does not give. */
async function outputOf(
  { client }: TerminalSpec,
  stop: Stop,
  terminalId: string,
): Promise<Shown | undefined> {
  const params = { terminalId }
  const question = { method: 'terminal/output', params, answer: shown, signal: stop.over }
  try {
    return await ask(client, question)
  } catch (error) {
    if (stop.cause === undefined) throw error
    return undefined
  }
}

async function release(client: AcpClient, stop: Stop, terminalId: string): Promise<void> {
  const params = { terminalId }
  const releasing = ask(client, { method: 'terminal/release', params, answer: nothing })
  try {
    await unless(stop.over, releasing)
  } catch {
    // A client that refuses, or is gone, cannot be made to do it.
  }
}

function isGone(error: unknown): boolean {
  return error instanceof AcpWorkspaceError && error.code === 'CLIENT_GONE'
}

function codesOf(exit: Exit | undefined): Pick<BashResult, 'exitCode' | 'signal'> {
  const { exitCode, signal } = exit ?? {}
  if (typeof exitCode === 'number') return { exitCode }
  return typeof signal === 'string' ? { signal } : {}
}

/** As much as was asked for, even when the client gives more. */
function keptOf(
  shownText: Shown | undefined,
  maxBytes: number,
): Pick<BashResult, 'output' | 'isTruncated'> {
  if (shownText === undefined) return { output: '', isTruncated: true }
  const tail = new ByteTail(maxBytes)
  tail.push(Buffer.from(shownText.output))
  const isTruncated = tail.isCut || shownText.truncated === true
  const note = isTruncated ? '[the start of the output was left out]\n' : ''
  return { output: note + tail.text(), isTruncated }
}
