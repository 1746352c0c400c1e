/** Contexts that end with their test, and fail it on any error that cordis logged. */
import { mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Context, type Message } from '@deepseek-ai/cordis'
import Include from '@deepseek-ai/cordis-plugin-include'
import Loader from '@deepseek-ai/cordis-plugin-loader'
import { onTestFinished } from 'vitest'

export interface TestContextOptions {
  /** Errors that the test expects: those whose text matches do not fail it. */
  readonly expectErrors?: RegExp
}

/** A root context, disposed after the test; an error that cordis logged fails the test. */
export function testContext({ expectErrors }: TestContextOptions = {}): Context {
  const ctx = new Context()
  const errors = collectErrors(ctx)
  onTestFinished(async () => {
    // The root goes last, and with it the log, which hears what fails on the way.
    const fibers = Array.from(ctx.registry.values(), (runtime) => [...runtime.fibers]).flat()
    const top = fibers.filter(({ parent }) => parent.fiber === ctx.fiber)
    await Promise.all(top.map((fiber) => fiber.dispose()))
    await ctx.fiber.dispose()
    const unexpected = errors.filter((text) => expectErrors?.test(text) !== true)
    if (unexpected.length > 0) throw new Error(`cordis logged errors:\n${unexpected.join('\n')}`)
  })
  return ctx
}

/** The texts of all errors that are logged from now on, causes included. */
export function collectErrors(ctx: Context): string[] {
  return collect(ctx, 'error')
}

/** The texts of all warnings that are logged from now on, causes included. */
export function collectWarnings(ctx: Context): string[] {
  return collect(ctx, 'warn')
}

function collect(ctx: Context, wanted: Message['type']): string[] {
  const texts: string[] = []
  ctx.logger.exporter({
    // cordis counts a warning as less than an information, and leaves it out by default.
    levels: { default: 2 },
    export: ({ type, args }: Message) => {
      if (type === wanted) texts.push(args.map(textOf).join(' '))
    },
  })
  return texts
}

function textOf(value: unknown): string {
  if (!(value instanceof Error)) return String(value)
  return value.cause === undefined ? `${value.stack}` : `${value.stack} <- ${textOf(value.cause)}`
}

/** A temporary folder, removed after the test; its path is a real path. */
export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'dsh-test-')))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A temporary folder in which every package of the workspace can be imported by name. */
export async function temporaryProject(
  files: Readonly<Record<string, string>> = {},
): Promise<string> {
  const folder = await temporaryFolder()
  const modules = fileURLToPath(new URL('../node_modules', import.meta.url))
  await symlink(modules, join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return folder
}

/**
 * Boots a yml through the real Loader, in a {@link temporaryProject} that also holds `files`.
 * Settles when every entry has loaded or failed; a failed one fails the test through the log.
 */
export async function bootYml(
  yml: string,
  options: TestContextOptions & { readonly files?: Readonly<Record<string, string>> } = {},
): Promise<Context> {
  const folder = await temporaryProject({ ...options.files, 'cordis.yml': yml })
  const ctx = testContext(options)
  ctx.baseUrl = `${pathToFileURL(folder).href}/`
  await ctx.plugin(Loader)
  ctx.loader.builtins.include = Include
  await ctx.loader.create({ name: 'cordis:include', config: { path: './cordis.yml' } })
  await ctx.loader.await()
  return ctx
}
