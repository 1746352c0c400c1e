/** The host's side of front ends: what the command line asked for, and who serves it. */
import { type Context, Service } from '@deepseek-ai/cordis'
import type { SessionId } from '@deepseek-ai/dsh-session'
import { AppError } from './errors.ts'

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
  onInterrupt(handler: () => void): void
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
  readonly slot = new FrontEndSlot()

  constructor(ctx: Context, { request, streams }: AppOptions) {
    super(ctx, 'app')
    this.request = request
    this.streams = streams
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

/** Holds the front end of a context, if there is one, and lets it serve. */
export class FrontEndSlot {
  private current: { readonly frontEnd: FrontEnd; readonly gone: AbortController } | undefined
  private arrival = Promise.withResolvers<void>()
  private interruptHandler: (() => void) | undefined

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
      this.arrival = Promise.withResolvers<void>()
      gone.abort()
    }
  }

  /**
   * Lets the front end serve. One that is reloaded meanwhile serves anew, unless it had a prompt:
   * nothing is asked twice.
   * @throws AppError `NO_FRONT_END`, `FRONT_END_GONE`, and what the front end rejects with.
   */
  async serve(request: AppRequest, signal: AbortSignal): Promise<number> {
    if (this.current === undefined) throw noFrontEnd()
    while (this.current !== undefined) {
      const { frontEnd, gone }: { frontEnd: FrontEnd; gone: AbortController } = this.current
      const code = await this.serveOne(frontEnd, request, AbortSignal.any([signal, gone.signal]))
      if (signal.aborted || !gone.signal.aborted) return code
      if (request.prompt !== undefined) throw goneWhileServing(frontEnd)
      await Promise.race([this.arrival.promise, abortOf(signal)])
    }
    return 0
  }

  /** Passes SIGINT on. @returns whether the front end takes care of it. */
  interrupt(): boolean {
    const handler = this.interruptHandler
    handler?.()
    return handler !== undefined
  }

  private async serveOne(
    frontEnd: FrontEnd,
    request: AppRequest,
    signal: AbortSignal,
  ): Promise<number> {
    const onInterrupt = (handler: () => void): void => {
      this.interruptHandler = handler
    }
    try {
      return await frontEnd.serve(request, { signal, onInterrupt })
    } finally {
      this.interruptHandler = undefined
    }
  }
}

function noFrontEnd(): AppError {
  return new AppError(
    'NO_FRONT_END',
    'no entry is a front end: add one, for example "@deepseek-ai/dsh-ui-terminal"',
  )
}

function goneWhileServing({ name }: FrontEnd): AppError {
  return new AppError(
    'FRONT_END_GONE',
    `front end "${name}" was unloaded while it answered: start again when the configuration is stable`,
  )
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

export default AppService
