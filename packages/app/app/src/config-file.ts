/** The yml that is booted, and those it includes: checked before they are applied, never written. */
import { setTimeout as delay } from 'node:timers/promises'
import { Service } from '@deepseek-ai/cordis'
import { Include } from '@deepseek-ai/cordis-plugin-include'
import { createNotify } from '@deepseek-ai/dsh-llm'
import { type Places, readEntries, withIds } from './entries.ts'
import { errorText } from './error-text.ts'
import { AppError } from './errors.ts'
import { ownName } from './log.ts'

/** Longer than the time in which a watcher drops further changes of one file, in ms. */
const settleMs = 100

/** An include whose file is checked in full first and whose entries keep their ids over an edit. */
export class ConfigFile extends Include {
  /** What the import of a module failed with, by the entry's `name`. */
  readonly importErrors = new Map<string, unknown>()
  /** Names of modules whose default export keeps cordis from seeing their `inject`. */
  readonly hidingInject = new Set<string>()
  /** Where its entries stand. */
  places: Places = new Map()
  private nextRefresh: Promise<void> | undefined
  private lastRefresh = Promise.resolve()

  override async *[Service.init](): AsyncGenerator<() => Promise<void>, void, void> {
    const { root } = this
    const update = root.update.bind(root)
    root.update = (entries) => update(withIds(entries))
    this.places = await readEntries(this.filename)
    yield* super[Service.init]()
  }

  /** Applies the file anew; one that is invalid leaves everything as it is. */
  override refresh(): Promise<void> {
    this.nextRefresh ??= this.refreshSoon()
    return this.nextRefresh
  }

  /** Refused: a file that people write keeps their comments and expressions. */
  override write(): void {}

  override async import(name: string, getOuterStack?: () => string[]): Promise<unknown> {
    try {
      const exports: unknown = await super.import(name, getOuterStack)
      const plugin: unknown = this.ctx.loader.unwrapExports(exports)
      if (plugin === Include) return ConfigFile
      if (this.ctx.registry.resolve(plugin as never) === undefined) throw notPlugin(name)
      if (hidesInject(exports, plugin)) this.hidingInject.add(name)
      else this.hidingInject.delete(name)
      this.importErrors.delete(name)
      return exports
    } catch (error) {
      this.importErrors.set(name, error)
      throw error
    }
  }

  /** One write can be several changes of the file, of which the watcher may tell the first alone. */
  private async refreshSoon(): Promise<void> {
    await delay(settleMs)
    this.nextRefresh = undefined
    this.lastRefresh = this.lastRefresh.then(() => this.refreshNow())
    await this.lastRefresh
  }

  private async refreshNow(): Promise<void> {
    const { ctx, filename } = this
    if (ctx.fiber.uid === null) return
    try {
      this.places = await readEntries(filename)
    } catch (error) {
      ctx.logger(ownName).warn(`${errorText(error)}\nthe configuration is kept as it was`)
      return
    }
    await super.refresh()
    const notify = createNotify(ctx)
    notify('app/changed')
  }
}

function hidesInject(exports: unknown, plugin: unknown): boolean {
  return 'inject' in Object(exports) && !('inject' in Object(plugin))
}

function notPlugin(name: string): AppError {
  return new AppError(
    'NOT_A_PLUGIN',
    name.startsWith('cordis:')
      ? `there is no "${name}": the built-in ones are cordis:include and cordis:group`
      : 'it exports no plugin: export a function "apply", or a class as default',
  )
}
