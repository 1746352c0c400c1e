/** Durable sessions: each log is an append-only file of JSON lines. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { FileStore } from './store.ts'

export { SessionFileError, type SessionFileErrorCode } from './errors.ts'
export { formatVersion } from './format.ts'
export { idsIn } from './glance.ts'
export { parseSession, readSession, type SessionFile } from './reader.ts'
export * from './summary.ts'

export const name = 'session-jsonl'
export const inject = ['sessions']

export interface Config {
  /** Folder of the files; relative to the yml's folder. Default: {@link defaultRoot}. */
  root?: string
}

export const Config: z<Config> = z.object({
  root: z.string().min(1),
})

export function apply(ctx: Context, { root }: Config): void {
  const { table } = ctx.sessions
  const { logger } = ctx
  const store = new FileStore({
    root: root === undefined ? defaultRoot() : resolveRoot(root, ctx.baseUrl),
    live: (id) => table.get(id),
    warn: (message) => logger.warn(message),
  })
  ctx.effect(function* () {
    yield () => store.retire()
    yield ctx.sessions.registerStore(store)
  }, 'session-jsonl')
}

/** `$XDG_STATE_HOME/dsh/sessions`, by default below `~/.local/state`. */
export function defaultRoot(): string {
  const state = process.env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state')
  return join(state, 'dsh', 'sessions')
}

function resolveRoot(root: string, baseUrl: string | undefined): string {
  return baseUrl === undefined ? resolve(root) : resolve(fileURLToPath(new URL('.', baseUrl)), root)
}
