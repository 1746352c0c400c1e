/** The command: from the command line to the exit code. */
import { text } from 'node:stream/consumers'
import { setImmediate as turnOfLoop } from 'node:timers/promises'
import {
  type App,
  AppError,
  type AppRequest,
  type AppStreams,
  boot,
  errorText,
  isDebugging,
  sanitize,
  stackOf,
} from '@deepseek-ai/dsh-app'
import { isHarnessError, within } from '@deepseek-ai/dsh-llm'
import { parseArguments } from './arguments.ts'
import type { Printing } from './console.ts'
import { Ending } from './ending.ts'
import { explain } from './remedies.ts'
import { storedMeant } from './session-ids.ts'

/** How long a front end may take to end when it is asked to, in ms. */
const serveGraceMs = 20_000

/**
 * Runs one command line. Never rejects; settles with the exit code when everything is disposed, and
 * leaves no listener behind.
 */
export async function main(
  argv: readonly string[],
  streams: AppStreams = process,
): Promise<number> {
  const ending = new Ending(streams)
  try {
    return await runCommand(argv, streams, { ending })
  } finally {
    ending.dispose()
  }
}

/** What the command has of its process. */
export interface Host {
  readonly ending: Ending
  /** What plugins print with `console`, where that is taken over. */
  readonly printing?: Printing
}

/** As {@link main}, in a process that the caller looks after to its end. */
export async function runCommand(
  argv: readonly string[],
  streams: AppStreams,
  host: Host,
): Promise<number> {
  const { ending } = host
  const code = await answer(argv, streams, host)
  // A rejection that nobody handles, or a reader that has gone, is told only when the event loop turns.
  await turnOfLoop()
  return ending.code ?? code
}

async function answer(argv: readonly string[], streams: AppStreams, host: Host): Promise<number> {
  const { ending } = host
  try {
    const [first, ...rest] = argv
    if (first === 'sessions') {
      // Only who asks for them pays for what reads them.
      const { showSessions } = await import('./sessions.ts')
      return await showSessions(rest, streams)
    }
    const parsed = parseArguments(argv, streams)
    if (typeof parsed === 'number') return parsed
    const request = await withPrompt(parsed.request, streams, ending.signal)
    await run(parsed.config, request, streams, host)
    return 0
  } catch (error) {
    if (ending.code !== undefined) return ending.code
    const why = isDebugging() ? stackOf(error) : errorText(error)
    streams.stderr.write(`dsh: ${sanitize(why)}\n`)
    return isHarnessError(error) ? 2 : 1
  }
}

async function run(
  config: string,
  request: AppRequest,
  streams: AppStreams,
  { ending, printing }: Host,
): Promise<void> {
  const app = await boot(config, { request, streams, signal: ending.signal })
  try {
    if (request.model !== undefined) app.ctx.get('llm')?.registry.require(request.model)
    ending.onInterrupt = () => app.interrupt()
    if (printing !== undefined) printing.onPrint = (printed) => app.show(printed)
    ending.end(await served(app, request, ending.signal))
  } catch (error) {
    throw explain(error, app.ctx, request)
  } finally {
    await disposed(app, streams)
  }
}

/** A session may be named by the beginning of its id. */
async function served(app: App, request: AppRequest, signal: AbortSignal): Promise<number> {
  const serve = (asked: AppRequest): Promise<number> => untilEnded(app.serve(signal, asked), signal)
  try {
    return await serve(request)
  } catch (error) {
    const resume = await storedMeant(error, app.ctx, request.resume)
    if (resume === undefined) throw error
    return serve({ ...request, resume })
  }
}

/** A front end that does not end when it is asked to is left behind. */
async function untilEnded(serving: Promise<number>, signal: AbortSignal): Promise<number> {
  const { promise: overdue, resolve } = Promise.withResolvers<number>()
  const onAbort = (): void => {
    void within(
      serveGraceMs,
      serving.catch(() => {}),
    ).then(() => resolve(1))
  }
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([serving, overdue])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

async function disposed(app: App, { stderr }: AppStreams): Promise<void> {
  if (await app.dispose()) return
  const names = app.remaining().join(', ') || 'what was started'
  stderr.write(`dsh: gave up waiting for ${names}, which does not end\n`)
}

/** A prompt of `-` is read from stdin. */
async function withPrompt(
  request: AppRequest,
  { stdin }: AppStreams,
  signal: AbortSignal,
): Promise<AppRequest> {
  if (request.prompt !== '-') return request
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(new AppError('INTERRUPTED', 'interrupted'))
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  let prompt: string
  try {
    prompt = await Promise.race([text(stdin), aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
  if (prompt.trim() === '') throw new AppError('USAGE', '-p - read no prompt: stdin was empty')
  return { ...request, prompt }
}
