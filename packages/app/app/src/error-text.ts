/** Errors in one line for people: what, where, and why in turn. */
import { createRequire } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isHarnessError, messageOf } from '@deepseek-ai/dsh-llm'

/** The message of anything that was thrown, with the place in the source when it is a plain error. */
export function errorText(error: unknown): string {
  return causesOf(error).map(textWithPlace).join(': ')
}

/** The stacks of an error and of its causes. */
export function stackOf(error: unknown): string {
  return causesOf(error)
    .map((cause) => (cause instanceof Error ? String(cause.stack) : messageOf(cause)))
    .join('\ncaused by: ')
}

/** How many causes are told: an error may be its own. */
const maxCauses = 8

function causesOf(error: unknown): unknown[] {
  const causes = [error]
  let last = error
  while (last instanceof Error && last.cause !== undefined && causes.length < maxCauses) {
    last = last.cause
    causes.push(last)
  }
  return causes
}

function textWithPlace(error: unknown): string {
  const message = messageOf(error).trim()
  if (!(error instanceof Error) || isHarnessError(error)) return message
  const place = placeOf(error)
  return place === undefined ? message : `${message} (${place})`
}

/** `file:line` of a syntax error or of the code that threw; absent when the stack does not tell. */
export function placeOf(error: Error): string | undefined {
  if (error instanceof SyntaxError) decorate(error)
  const stack = error.stack ?? ''
  const header = /^(file:\/\/\S+?|\/.+?|[A-Za-z]:\\.+?):(\d+)$/m.exec(stack.split('\n', 1)[0] ?? '')
  if (header !== null) return `${pathOf(header[1] ?? '')}:${header[2]}`
  for (const [, file = '', line] of stack.matchAll(/^ +at .*?\(?(file:\/\/.+?):(\d+):\d+\)?$/gm)) {
    if (!file.includes('/node_modules/')) return `${pathOf(file)}:${line}`
  }
  return undefined
}

/** The path as somebody in the current folder would write it. */
export function pathOf(file: string): string {
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const fromHere = relative(process.cwd(), path)
  return fromHere.startsWith('..') || fromHere === '' ? path : fromHere
}

/** Node keeps the place of a JavaScript syntax error out of the stack until it prints it itself. */
function decorate(error: Error): void {
  try {
    const addon = createRequire(import.meta.url)('node-addon-require-builtin') as {
      requireBuiltin(id: string): { decorateErrorStack(error: Error): void }
    }
    addon.requireBuiltin('internal/util').decorateErrorStack(error)
  } catch {
    // Without the addon the message lacks the line, and nothing else.
  }
}
