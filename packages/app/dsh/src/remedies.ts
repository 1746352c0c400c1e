/** What helps when a configuration that booted cannot serve the request. */
import type { Context } from '@deepseek-ai/cordis'
import { isJsExpr } from '@deepseek-ai/cordis-plugin-loader'
import { AppError, type AppRequest, nameOf } from '@deepseek-ai/dsh-app'
import { isHarnessError } from '@deepseek-ai/dsh-llm'
import { unknownSession } from './session-ids.ts'

/** The error, or one that names the entry and the remedy in its place. */
export function explain(error: unknown, ctx: Context, { model }: AppRequest): unknown {
  if (!isHarnessError(error)) return error
  const { code, message } = error
  switch (code) {
    case 'UNKNOWN_MODEL':
      return told(error, model === undefined ? modelOfEntry(ctx, message) : `--model: ${message}`)
    case 'NO_MODEL':
      return told(error, [message, ...disabledEntries(ctx)].join('\n'))
    case 'NO_STORE':
      return told(error, `${message}: add an entry for "@deepseek-ai/dsh-session-jsonl"`)
    case 'NO_DRIVER':
      return told(error, `${message}: add an entry for "@deepseek-ai/dsh-agent-core"`)
    case 'UNKNOWN_SESSION':
      return told(error, `--resume: ${unknownSession(message)}`)
    default:
      return error
  }
}

function told(cause: Error, message: string): AppError {
  const error = new AppError('INVALID_CONFIG', message)
  if (cause.stack !== undefined) error.stack = cause.stack
  return error
}

function modelOfEntry(ctx: Context, message: string): string {
  const model = /^no model "(.*?)"/.exec(message)?.[1]
  for (const entry of ctx.loader.entries()) {
    const { config } = entry.options as { config?: { model?: unknown } | undefined }
    if (config?.model === model) return `${nameOf(entry)}: config key "model": ${message}`
  }
  return message
}

/** Entries that an expression disabled: mostly adapters whose key is not set. */
function disabledEntries(ctx: Context): string[] {
  return [...ctx.loader.entries()].flatMap((entry) => {
    const { disabled } = entry.options as { disabled?: unknown }
    if (!isJsExpr(disabled) || !entry.disabled) return []
    return [`  ${nameOf(entry)} is disabled, because of: ${Object.values(disabled).join()}`]
  })
}
