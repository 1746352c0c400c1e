/** Terminal front end: a REPL, and one answer with `-p`. */
import type { Context } from '@deepseek-ai/cordis'
import { serveOnce } from './one-shot.ts'
import { serveRepl } from './repl.ts'
import type { Config } from './config.ts'

export { Config } from './config.ts'

export const name = 'ui-terminal'
export const inject = ['app', 'agents', 'llm', 'sessions']

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
