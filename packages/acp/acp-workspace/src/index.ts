/** Lets agents use the files and terminals of the client in whose session they work. */
import type { Context } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { clientFiles } from './files.ts'
import { Offers } from './offers.ts'
import { Terminals } from './terminals.ts'

export * from './errors.ts'

export const name = 'acp-workspace'
export const inject = ['acpClients']

export interface Config {
  /** Whether texts are read and written by the client. */
  files: boolean
  /** Whether commands run in terminals of the client. */
  terminals: boolean
  /** The shell of these commands, as the client finds it. */
  shell: string
  /** Variables for these commands; nothing else of ours is sent. */
  env: Record<string, string>
  /** Longest output that is given whole, in bytes; of a longer one, the end. */
  maxOutputBytes: number
  /** How long the client may take for the end of a command that is stopped, in ms. */
  graceMs: number
}

export const Config: z<Partial<Config>, Config> = z.object({
  files: z.boolean().default(true),
  terminals: z.boolean().default(true),
  shell: z.string().default('bash'),
  env: z.dict(z.string().required()),
  maxOutputBytes: z.natural().min(100).max(16_777_216).default(32_768),
  graceMs: z.natural().max(60_000).default(750),
})

export function apply(ctx: Context, { files, terminals: usesTerminals, ...options }: Config): void {
  const { acpClients, logger } = ctx
  const warn = (message: string): void => logger.warn(message)
  const offers = new Offers(acpClients, warn)
  if (files) {
    ctx.on('fs/text-files', ({ id }) => {
      const client = offers.files(id)
      return client && clientFiles(client)
    })
  }
  if (!usesTerminals) return
  const terminals = new Terminals(options, warn)
  ctx.effect(() => () => terminals.dispose(), 'acp-workspace.dispose()')
  ctx.on('bash/execute', (request, next) => {
    const client = offers.terminals(request.caller?.sessionId)
    return client === undefined ? next() : terminals.run(client, request)
  })
}
