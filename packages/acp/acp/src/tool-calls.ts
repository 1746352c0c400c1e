/** How the calls of tools look to a client. */
import { resolve } from 'node:path'
import type { ToolCall, ToolCallContent, ToolKind } from '@agentclientprotocol/sdk'
import type { JsonValue, ToolResultContent } from '@deepseek-ai/dsh-llm'
import { toAcpContent } from './content.ts'

/** What a client is shown of a call before it has a result. */
export type CallView = Pick<
  ToolCall,
  'title' | 'name' | 'kind' | 'locations' | 'content' | 'rawInput'
>

const maxTitleLength = 120
/** Larger changes are not shown as a diff, in UTF-16 units. */
const maxDiffLength = 1_000_000

const kinds: ReadonlyMap<string, ToolKind> = new Map([
  ['read', 'read'],
  ['write', 'edit'],
  ['edit', 'edit'],
  ['glob', 'search'],
  ['grep', 'search'],
  ['bash', 'execute'],
])

/** @param cwd what relative paths are relative to. */
export function viewOfCall(name: string, input: JsonValue, cwd: string): CallView {
  const path = textAt(input, 'path')
  const line = numberAt(input, 'offset')
  const diff = name === 'edit' ? diffOfEdit(input, cwd) : undefined
  return {
    title: titleOf(name, input),
    name,
    kind: kinds.get(name) ?? (name.startsWith('subagent') ? 'think' : 'other'),
    rawInput: input,
    ...(path !== undefined &&
      kinds.has(name) && {
        locations: [{ path: resolve(cwd, path), ...(line !== undefined && { line }) }],
      }),
    ...(diff !== undefined && { content: [diff] }),
  }
}

/** The diff of a `write` over `oldText`; absent when there is nothing to show, or too much. */
export function diffOfWrite(
  input: JsonValue,
  cwd: string,
  oldText: string | undefined,
): ToolCallContent | undefined {
  const path = textAt(input, 'path')
  const newText = textAt(input, 'content')
  return path === undefined || newText === undefined
    ? undefined
    : diffOf(resolve(cwd, path), oldText, newText)
}

/** The content of a result. */
export function contentOfResult(content: ToolResultContent): ToolCallContent[] {
  return content.map((block) => ({ type: 'content', content: toAcpContent(block) }))
}

function diffOfEdit(input: JsonValue, cwd: string): ToolCallContent | undefined {
  const path = textAt(input, 'path')
  const oldText = textAt(input, 'oldText')
  const newText = textAt(input, 'newText')
  return path === undefined || oldText === undefined || newText === undefined
    ? undefined
    : diffOf(resolve(cwd, path), oldText, newText)
}

function diffOf(
  path: string,
  oldText: string | undefined,
  newText: string,
): ToolCallContent | undefined {
  if ((oldText?.length ?? 0) + newText.length > maxDiffLength) return undefined
  return { type: 'diff', path, newText, ...(oldText !== undefined && { oldText }) }
}

function titleOf(name: string, input: JsonValue): string {
  switch (name) {
    case 'read':
    case 'write':
    case 'edit':
      return titled(name, textAt(input, 'path'))
    case 'glob':
    case 'grep':
      return titled(name, textAt(input, 'pattern'))
    case 'bash':
      return titled('', textAt(input, 'command')) || name
    default:
      return titled(name, textAt(input, 'description'))
  }
}

function titled(name: string, what = ''): string {
  const line = `${name} ${what.slice(0, maxTitleLength * 4).toWellFormed()}`
    .replace(/\s+/g, ' ')
    .trim()
  const characters = Array.from(line)
  return characters.length <= maxTitleLength
    ? line
    : `${characters.slice(0, maxTitleLength - 1).join('')}…`
}

function textAt(input: JsonValue, key: string): string | undefined {
  const value = valueAt(input, key)
  return typeof value === 'string' ? value : undefined
}

function numberAt(input: JsonValue, key: string): number | undefined {
  const value = valueAt(input, key)
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

function valueAt(input: JsonValue, key: string): JsonValue | undefined {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return undefined
  return (input as { readonly [key: string]: JsonValue })[key]
}
