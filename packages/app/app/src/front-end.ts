/** The host's side of front ends: what the command line asked for, and who serves it. */
import { type Context, Service } from '@deepseek-ai/cordis'
import type { SessionId } from '@deepseek-ai/dsh-session'
import { AppError } from './errors.ts'
import { ownName } from './log.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    app: AppService
  }
}

/** What the front end is asked to do. */
export interface AppRequest {
  /** Answer this and end; absent: serve until the user leaves. */
  readonly prompt?: string
  /** What stdout carries. */
  readonly output: 'text' | 'json' | 'events'
  /** Absolute path of the folder that new agents work in. */
  readonly cwd: string
  /** A registered model; absent: the default of the agents. */
  readonly model?: string
  /** A stored session to go on with. */
  readonly resume?: SessionId
}

/** Where a front end reads and writes; only it writes to `stdout`. */
export interface AppStreams {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

/** What stands between agents and whoever uses them; one per context. */
export interface FrontEnd {
  readonly name: string
  /**
   * Serves the request; gives the exit code: 0 completed, 1 the agent failed, 130 interrupted.
   * Settles soon after `control.signal` is aborted, with whatever it started disposed.
   * Rejects with a HarnessError when it was asked for something that it cannot do.
   */
  serve(request: AppRequest, control: FrontEndControl): Promise<number>
}

/** How the command reaches the front end that serves. */
export interface FrontEndControl {
  /** Aborted when the command must end, or the front end is unloaded. */
  readonly signal: AbortSignal
  /** Takes SIGINT from here on; without a handler it aborts the signal. */
  readonly onInterrupt: (handler: () => void) => void
  /** Takes what plugins log or print, a line or more at a time, in place of stderr. */
  readonly onLog: (handler: (text: string) => void) => void
}

/** What {@link AppService} hands to the front end. */
export interface AppOptions {
  readonly request: AppRequest
  readonly streams: AppStreams
}

/** The one {@link FrontEnd} of a context, reached through `ctx.app`. */
export class AppService extends Service {
  readonly request: AppRequest
  readonly streams: AppStreams
  /** The plain place of the front end: a service that is reached through a proxy cannot keep state. */
  readonly slot: FrontEndSlot

  constructor(ctx: Context, { request, streams }: AppOptions) {
    super(ctx, 'app')
    this.request = request
    this.streams = streams
    const logger = ctx.logger(ownName)
    this.slot = new FrontEndSlot((error) => logger.error(error))
  }

  /**
   * Makes a front end the one that serves, until the calling plugin is disposed.
   * @returns a disposer that removes it early; calling it twice is harmless.
   * @throws AppError `DUPLICATE_FRONT_END`.
   */
  registerFrontEnd(frontEnd: FrontEnd): () => Promise<void> {
    const { slot } = this
    return this.ctx.effect(() => slot.fill(frontEnd), `app.registerFrontEnd(${frontEnd.name})`)
  }
}

interface Occupant {
  readonly frontEnd: FrontEnd
  readonly gone: AbortController
}

/** Holds the front end of a context, if there is one, and lets it serve. */
export class FrontEndSlot {
  private current: Occupant | undefined
  private arrival = Promise.withResolvers<void>()
  private interruptHandler: (() => void) | undefined
  private logHandler: ((text: string) => void) | undefined
  private readonly tell: (error: unknown) => void

  constructor(tell: (error: unknown) => void) {
    this.tell = tell
  }

  /** @returns what empties the slot again. @throws AppError `DUPLICATE_FRONT_END`. */
  fill(frontEnd: FrontEnd): () => void {
    if (this.current !== undefined) {
      throw new AppError(
        'DUPLICATE_FRONT_END',
        `front end "${frontEnd.name}" cannot serve beside "${this.current.frontEnd.name}": remove one of the two entries`,
      )
    }
    const gone = new AbortController()
    this.current = { frontEnd, gone }
    this.arrival.resolve()
    return () => {
      this.current = undefined
      gone.abort()
    }
  }

  /**
   * Lets the front end serve. One that is reloaded meanwhile serves anew once all is `ready`, unless
   * it had a prompt: nothing is asked twice.
   * @throws AppError `NO_FRONT_END`, `FRONT_END_GONE`, and what the front end rejects with at first.
   */
  async serve(
    request: AppRequest,
    signal: AbortSignal,
    ready: () => Promise<void>,
  ): Promise<number> {
    if (this.current === undefined) throw noFrontEnd()
    let outcome = await this.serveOne(this.current, request, signal)
    while (outcome === 'gone') {
      if (request.prompt !== undefined) throw frontEndGone()
      await Promise.race([this.arrival.promise, abortOf(signal)])
      if (signal.aborted) return 0
      await ready()
      outcome = await this.serveAgain(request, signal)
    }
    return outcome
  }

  /** Something has changed: what could not serve may be able to. */
  retry(): void {
    if (this.current !== undefined) this.arrival.resolve()
  }

  /** Passes SIGINT on. @returns whether the front end takes care of it. */
  interrupt(): boolean {
    const handler = this.interruptHandler
    handler?.()
    return handler !== undefined
  }

  /** Passes on what was logged or printed. @returns whether the front end shows it. */
  log(text: string): boolean {
    const handler = this.logHandler
    handler?.(text)
    return handler !== undefined
  }

  /** A reload must not end the command: what is wrong is told, and the next change tries again. */
  private async serveAgain(request: AppRequest, signal: AbortSignal): Promise<number | 'gone'> {
    this.arrival = Promise.withResolvers<void>()
    if (this.current === undefined) return 'gone'
    try {
      return await this.serveOne(this.current, request, signal)
    } catch (error) {
      this.tell(error)
      return 'gone'
    }
  }

  private async serveOne(
    { frontEnd, gone }: Occupant,
    request: AppRequest,
    signal: AbortSignal,
  ): Promise<number | 'gone'> {
    const onInterrupt: FrontEndControl['onInterrupt'] = (handler) => {
      this.interruptHandler = handler
    }
    const onLog: FrontEndControl['onLog'] = (handler) => {
      this.logHandler = handler
    }
    try {
      const either = AbortSignal.any([signal, gone.signal])
      const code = await frontEnd.serve(request, { signal: either, onInterrupt, onLog })
      return gone.signal.aborted && !signal.aborted ? 'gone' : code
    } finally {
      this.interruptHandler = undefined
      this.logHandler = undefined
    }
  }
}

function noFrontEnd(): AppError {
  return new AppError(
    'NO_FRONT_END',
    'no entry is a front end: add one, for example "@deepseek-ai/dsh-ui-terminal"',
  )
}

function frontEndGone(): AppError {
  return new AppError(
    'FRONT_END_GONE',
    'the front end was unloaded while it answered: start again when the configuration is stable',
  )
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

export default AppService
