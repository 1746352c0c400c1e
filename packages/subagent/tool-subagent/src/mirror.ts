/** Keeps a tool registered exactly while its subagent provider is. */
import type { Context, Fiber } from '@deepseek-ai/cordis'
import type { SubagentProvider } from '@deepseek-ai/dsh-subagent'
import type { Tool } from '@deepseek-ai/dsh-tools'
import type { z } from 'zod'

export interface Mirror<Parameters extends z.ZodObject> {
  readonly providerName: string
  /** Called for the provider, and again for each that replaces it. */
  readonly createTool: (provider: SubagentProvider) => Tool<Parameters>
}

/**
 * Registers the tool while the provider is there, in any load order.
 * @throws what `createTool` and the registration throw, when the provider is there already.
 */
export function mirrorProvider<Parameters extends z.ZodObject>(
  ctx: Context,
  { providerName, createTool }: Mirror<Parameters>,
): void {
  const { fiber } = ctx
  let remove: (() => unknown) | undefined
  const add = (provider: SubagentProvider): void => {
    remove = ctx.tools.register(createTool(provider))
  }
  ctx.on('subagent/provider-removed', ({ provider }) => {
    if (provider.name !== providerName) return
    remove?.()
  })
  ctx.on('subagent/provider-added', ({ provider }) => {
    if (provider.name !== providerName) return
    try {
      add(provider)
    } catch {
      // A throw from here would take the innocent provider back.
      void loadAgain(fiber)
    }
  })
  const present = ctx.subagents.getProvider(providerName)
  if (present === undefined) warnWhenSettled(ctx, providerName)
  else add(present)
}

/** Repeats the load, now with the provider there: what is wrong then fails it, loudly. */
async function loadAgain(fiber: Fiber): Promise<void> {
  try {
    // While a load is under way, a restart would be forgotten.
    while (fiber.inertia !== undefined) await fiber.inertia
    await fiber.restart()
  } catch {
    // cordis has logged why the load failed.
  }
}

/** Warns once when the Loader has nothing left to load and the provider is still not there. */
function warnWhenSettled(ctx: Context, providerName: string): void {
  const { logger, subagents } = ctx
  const loader = ctx.get('loader') as { await(): Promise<void> } | undefined
  ctx.effect(() => {
    let isUnloaded = false
    const warn = (): void => {
      if (isUnloaded || subagents.getProvider(providerName) !== undefined) return
      const known = subagents.list().join(', ') || 'none'
      logger.warn(
        `no subagent provider "${providerName}" (registered: ${known}): its tool is missing until one of that name is loaded`,
      )
    }
    void loader?.await().then(warn)
    return () => {
      isUnloaded = true
    }
  }, 'tool-subagent.warnWhenSettled()')
}
