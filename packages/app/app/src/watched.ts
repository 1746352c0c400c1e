/** What hot reload watches where it is given no folders: the files that are loaded, and nothing else. */
import { type EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import { within } from '@deepseek-ai/dsh-llm'
import { ConfigFile } from './config-file.ts'

/** What is relied on of the hot-reload plugin. Source: the service that it provides as `hmr`. */
interface HotReload {
  readonly config: { readonly root: readonly string[] }
  readonly watcher?: EventEmitter & { add(files: readonly string[]): unknown }
}

/** A file that goes away meanwhile must not hold the start up. */
const readyWaitMs = 1000

/** Tells the watcher of hot reload what was loaded since the last time. */
export class WatchedFiles {
  private readonly ctx: Context
  private watcher: HotReload['watcher']
  private known = new Set<string>()

  constructor(ctx: Context) {
    this.ctx = ctx
  }

  /** Settles when changes from now on are seen; at once where folders are watched, or nothing is. */
  async update(): Promise<void> {
    const { watcher, config } = (this.ctx.get('hmr') as HotReload | undefined) ?? {}
    if (watcher === undefined || (config?.root.length ?? 0) > 0) return
    const isNew = watcher !== this.watcher
    if (isNew) this.known = new Set()
    this.watcher = watcher
    const added = loadedFiles(this.ctx).filter((file) => !this.known.has(file))
    for (const file of added) this.known.add(file)
    if (added.length === 0) return
    // It tells only once that it is ready; what it fails with, the plugin tells.
    const ready = isNew ? once(watcher, 'ready').catch(() => {}) : Promise.resolve()
    watcher.add(added)
    await within(readyWaitMs, ready)
  }
}

/** The modules that are not of installed packages, and each yml. */
function loadedFiles({ loader }: Context): string[] {
  const modules = Array.from(loader.internal?.loadCache.keys() ?? [])
    .filter((url) => url.startsWith('file:') && !url.includes('/node_modules/'))
    .map((url) => fileURLToPath(new URL(url)))
  const configs = Array.from(loader.entries(), ({ subtree }) => subtree)
    .filter((subtree) => subtree instanceof ConfigFile)
    .map(({ filename }) => filename)
  return [...modules, ...configs]
}
