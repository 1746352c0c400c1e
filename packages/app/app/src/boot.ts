/** Boots a yml: loads every entry, and refuses a configuration of which any part did not load. */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { loadEnvFile } from 'node:process'
import { pathToFileURL } from 'node:url'
import { Context } from '@deepseek-ai/cordis'
import { type Entry, Group, Loader } from '@deepseek-ai/cordis-plugin-loader'
import { within } from '@deepseek-ai/dsh-llm'
import { type AppRequest, AppService, type AppStreams } from './front-end.ts'
import { nameOf, type Problem, problemsOf } from './check.ts'
import { ConfigFile } from './config-file.ts'
import { readEntries } from './entries.ts'
import { errorText, pathOf } from './error-text.ts'
import { AppError } from './errors.ts'
import { ownName, StderrLog } from './log.ts'
import { WatchedFiles } from './watched.ts'

declare module '@deepseek-ai/cordis' {
  interface Events {
    /** The entries were applied again after a change of a yml. Contained. */
    'app/changed'(): void
    /** Modules were loaded anew; emitted by the hot-reload plugin. */
    'hmr/reload'(reloads: ReadonlyMap<unknown, { readonly filename: string }>): void
  }
}

/** What an embedder may set. */
export interface BootOptions {
  /** What is absent: output `text`, the current folder. */
  readonly request?: Partial<AppRequest>
  /** Default: those of the process. */
  readonly streams?: AppStreams
  /** Gives up the boot. */
  readonly signal?: AbortSignal
  /** After this time the entries that are still being loaded are named on stderr; default 10 s. */
  readonly slowMs?: number
}

/** A configuration that runs. */
export interface App {
  readonly ctx: Context
  /**
   * Lets the front end serve the request, by default that of the boot.
   * @throws AppError `NO_FRONT_END`, `FRONT_END_GONE`, and what the front end rejects with.
   */
  serve(signal: AbortSignal, request?: AppRequest): Promise<number>
  /** Passes SIGINT on. @returns whether the front end takes care of it. */
  interrupt(): boolean
  /** Passes on what was printed, without the end of its last line. @returns whether the front end shows it. */
  show(text: string): boolean
  /** Disposes everything; waits at most `graceMs`. @returns whether all was gone by then. */
  dispose(graceMs?: number): Promise<boolean>
  /** The names of the entries that are still on their way out. */
  remaining(): string[]
}

const defaultGraceMs = 20_000
/** What is half started may never end. */
const failedBootGraceMs = 3000
const defaultSlowMs = 10_000

/**
 * Loads the yml at `path` and a `.env` beside it, whose variables never replace those that are set.
 * Settles when every entry has loaded.
 * @throws AppError `INVALID_CONFIG`, `BOOT_FAILED`, one line per problem; `INTERRUPTED`. Nothing is
 * left running then.
 */
export async function boot(path: string, options: BootOptions = {}): Promise<App> {
  const file = resolve(path)
  await readEntries(file)
  readEnvironment(dirname(file))
  const ctx = new Context()
  const { stderr } = streamsOf(options)
  const log = new StderrLog((text) => {
    if (ctx.get('app')?.slot.log(text) !== true) stderr.write(`${text}\n`)
  })
  ctx.logger.exporter(log)
  log.hold()
  let root: Entry
  try {
    root = await loadAll(ctx, file, options)
  } catch (error) {
    log.release(false)
    // What fails on the way out is logged; why nothing runs is what is told.
    await within(
      failedBootGraceMs,
      disposeAll(ctx, log).catch(() => {}),
    )
    throw error
  }
  log.release(true)
  return createApp(ctx, log, root)
}

function createApp(ctx: Context, log: StderrLog, root: Entry): App {
  const { slot, request: first } = ctx.app
  const { loader } = ctx
  let disposal: Promise<void> | undefined
  let leaving: { readonly name: string; readonly entry: Entry }[] = []
  const begin = (): Promise<void> => {
    // The loader forgets them on the way.
    const own = [...loader.entries()].filter(isOwn)
    leaving = own.map((entry) => ({ name: nameOf(entry, root), entry }))
    return disposeAll(ctx, log)
  }
  return {
    ctx,
    serve: (signal, request = first) => slot.serve(request, signal, () => quiet(ctx, loader)),
    interrupt: () => slot.interrupt(),
    show: (text) => slot.log(text),
    dispose: (graceMs = defaultGraceMs) => within(graceMs, (disposal ??= begin())),
    remaining: () =>
      leaving.filter(({ entry }) => entry.fiber?.inertia !== undefined).map(({ name }) => name),
  }
}

/** @returns the entry of the yml itself. */
async function loadAll(ctx: Context, file: string, options: BootOptions): Promise<Entry> {
  ctx.baseUrl = pathToFileURL(join(dirname(file), '/')).href
  const { output = 'text', cwd = process.cwd(), ...rest } = options.request ?? {}
  await ctx.plugin(Loader)
  await ctx.plugin(AppService, { request: { output, cwd, ...rest }, streams: streamsOf(options) })
  const { loader } = ctx
  Object.assign(loader.builtins, { include: ConfigFile, group: Group })
  loader.exit = () => ctx.logger(ownName).warn('the command itself has changed: start it again')
  const config = { path: pathToFileURL(file).href }
  const root = loader.resolve(await loader.create({ name: 'cordis:include', config }))
  await started(ctx, root, options)
  const problems = await problemsOf(loader, root)
  if (problems.length > 0) throw bootFailed(file, problems)
  await watchChanges(ctx, root)
  return root
}

/** Settles when nothing is being loaded any more. */
async function started(ctx: Context, root: Entry, options: BootOptions): Promise<void> {
  const { stderr } = streamsOf(options)
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(new AppError('INTERRUPTED', 'interrupted while starting'))
  const timer = setInterval(() => {
    const busy = busyEntries(ctx).map((entry) => nameOf(entry, root))
    // Between the yml and its entries there is nobody to name.
    if (busy.length === 0) return
    clearInterval(timer)
    stderr.write(`still starting: ${busy.join(', ')}\n`)
  }, options.slowMs ?? defaultSlowMs)
  if (options.signal?.aborted === true) onAbort()
  options.signal?.addEventListener('abort', onAbort, { once: true })
  try {
    await Promise.race([quiet(ctx, ctx.loader), aborted])
  } finally {
    options.signal?.removeEventListener('abort', onAbort)
    clearInterval(timer)
  }
}

/** Settles when no import and no fiber is under way, those below the entries among them. */
async function quiet(ctx: Context, loader: Loader): Promise<void> {
  while (true) {
    const fibers = Array.from(ctx.registry.values(), ({ fibers: list }) => [...list]).flat()
    const changing = fibers.map(({ inertia }) => inertia).filter((task) => task !== undefined)
    const tasks = [...loader.getTasks(), ...changing]
    if (tasks.length === 0) return
    await Promise.allSettled(tasks)
  }
}

function busyEntries(ctx: Context): Entry[] {
  return [...ctx.loader.entries()].filter(
    (entry) => isOwn(entry) && (entry.fiber === undefined || entry.fiber.inertia !== undefined),
  )
}

/** Whether it is more than a file or a group of others. */
function isOwn({ subtree, subgroup }: Entry): boolean {
  return subtree === undefined && subgroup === undefined
}

function bootFailed(file: string, problems: readonly Problem[]): AppError {
  const lines = problems.map(({ text }) => `  ${text}`)
  return new AppError('BOOT_FAILED', `cannot start "${pathOf(file)}":\n${lines.join('\n')}`)
}

/** Tells of reloads, and of what cordis passes over in silence after one. */
async function watchChanges(ctx: Context, root: Entry): Promise<void> {
  const { loader } = root
  const { slot } = ctx.app
  const logger = ctx.logger(ownName)
  const files = new WatchedFiles(ctx)
  const check = oneAtATime(async () => {
    await quiet(ctx, loader)
    for (const { kind, text } of await problemsOf(loader, root)) {
      if (kind === 'silent') logger.warn(text)
    }
    await files.update()
    slot.retry()
  })
  ctx.on('app/changed', () => check())
  ctx.on('hmr/reload', (reloads) => {
    for (const { filename } of reloads.values()) logger.info(`reloaded ${pathOf(filename)}`)
    check().catch((error: unknown) => logger.error(error))
  })
  await files.update()
}

/** Runs the task after the one that is under way, once for all who ask meanwhile. */
function oneAtATime(task: () => Promise<void>): () => Promise<void> {
  let last: Promise<unknown> = Promise.resolve()
  let next: Promise<void> | undefined
  const run = (): Promise<void> => {
    next = undefined
    return task()
  }
  return () => {
    next ??= last.then(run, run)
    last = next
    return next
  }
}

function readEnvironment(folder: string): void {
  const file = join(folder, '.env')
  if (!existsSync(file)) return
  try {
    loadEnvFile(file)
  } catch (error) {
    throw new AppError('INVALID_CONFIG', `"${pathOf(file)}" cannot be read: ${errorText(error)}`)
  }
}

function streamsOf({ streams = process }: BootOptions): AppStreams {
  return streams
}

async function disposeAll(ctx: Context, log: StderrLog): Promise<void> {
  try {
    // The root goes last, and with it the log, which hears what fails on the way.
    const fibers = Array.from(ctx.registry.values(), ({ fibers: list }) => [...list]).flat()
    const top = fibers.filter(({ parent }) => parent.fiber === ctx.fiber)
    await Promise.all(top.map((fiber) => fiber.dispose()))
    await ctx.fiber.dispose()
  } finally {
    log.flush()
  }
}
