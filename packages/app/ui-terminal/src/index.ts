/** Terminal front end: a REPL, and one answer with `-p`. */
import type { Context } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { serveOnce } from './one-shot.ts'
import { serveRepl } from './repl.ts'

export const name = 'ui-terminal'
export const inject = ['app', 'agents', 'llm', 'sessions']

export interface Config {
  /** What a terminal shows when it waits for input. */
  prompt: string
  /** Whether the model's reasoning is shown. */
  showReasoning: boolean
}

export const Config: z<Partial<Config>, Config> = z.object({
  prompt: z.string().default('> '),
  showReasoning: z.boolean().default(false),
})

export function apply(ctx: Context, config: Config): void {
  const { streams } = ctx.app
  ctx.app.registerFrontEnd({
    name: 'terminal',
    serve: (request, control) => {
      const serving = { ctx, config, streams, request, control }
      const { prompt } = request
      return prompt === undefined ? serveRepl(serving) : serveOnce({ ...serving, prompt })
    },
  })
}
