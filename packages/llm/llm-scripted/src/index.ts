/** An offline model: a script that picks each reply by the conversation, from a playbook. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { createAdapter } from './adapter.ts'
import { ScriptError } from './errors.ts'
import { parsePlaybook, type Playbook, readPlaybook } from './playbook.ts'

export * from './errors.ts'

export const name = 'llm-scripted'
export const inject = ['llm']

export interface Config {
  /** Name of the model adapter. */
  adapterName: string
  /** Name of the one model that it serves. */
  model: string
  /** Path of a yml or json file, from the folder of the yml that loads the plugin. */
  playbook?: string
  /** The playbook itself, in the place of a file. */
  rules?: unknown[]
  /** Code points of a delta of replies that do not tell; absent: the whole text is one. */
  chunkSize?: number
  /** Wait before each delta and call of replies that do not tell, in ms; absent: none. */
  delayMs?: number
}

export const Config: z<Partial<Config>, Config> = z.object({
  adapterName: z.string().default('scripted'),
  model: z.string().default('scripted'),
  playbook: z.string(),
  rules: z.array(z.any()).default(undefined as never),
  chunkSize: z.natural().min(1),
  delayMs: z.natural().max(60_000),
})

export function apply(ctx: Context, config: Config): void {
  const playbook = playbookOf(config, ctx.baseUrl)
  ctx.llm.registerAdapter(createAdapter(config, playbook))
  const { source, rules } = playbook
  ctx.logger.info(`model "${config.model}" is a script: ${rules.length} rules from ${source}`)
}

function playbookOf({ playbook, rules }: Config, baseUrl: string | undefined): Playbook {
  if ((playbook === undefined) === (rules === undefined)) {
    throw new ScriptError(
      'INVALID_PLAYBOOK',
      'a scripted model needs exactly one of "playbook" (a file) and "rules" (a list)',
    )
  }
  if (playbook === undefined) return parsePlaybook('the config\'s "rules"', rules)
  return readPlaybook(resolve(baseUrl === undefined ? '' : fileURLToPath(baseUrl), playbook))
}
