/** Carries out one tool call; whatever happens becomes its result. */
import { failureOf, type ImageBlock, quote, type TextBlock } from '@deepseek-ai/dsh-llm'
import { z } from 'zod'
import { errorResult, textResult } from './results.ts'
import type { ToolTable } from './table.ts'
import type { Tool, ToolCall, ToolProgress, ToolResult } from './types.ts'

/** Wraps the execution of a call, as the `tools/execute` listeners do. */
export type Wrap = (call: ToolCall, inner: () => Promise<ToolResult>) => Promise<ToolResult>

export interface ExecuteOptions {
  readonly table: ToolTable
  readonly wrap: Wrap
  readonly update: (call: ToolCall, progress: ToolProgress) => void
}

/** Finds, checks and runs the tool of a call. Never rejects. */
export async function executeCall(call: ToolCall, options: ExecuteOptions): Promise<ToolResult> {
  if (call.signal.aborted) return abortedResult(call.name)
  try {
    const found = options.table.lookup(call.agent, call.name)
    if (found.kind !== 'found') return refuse(call, found.kind, options.table)
    return checked(call, await options.wrap(call, () => runTool(found.tool, call, options)))
  } catch (error) {
    return failedResult(call, error)
  }
}

/** The result of a call that was cut off by a cancel. */
export function abortedResult(name: string): ToolResult {
  return errorResult('ABORTED', `tool ${quote(name)} was aborted`)
}

function refuse(
  { agent, name }: ToolCall,
  why: 'denied' | 'unknown',
  table: ToolTable,
): ToolResult {
  if (why === 'denied') {
    return errorResult('TOOL_DENIED', `tool "${name}" is not allowed for this agent`)
  }
  const known = table.visible(agent).map((tool) => tool.name)
  return errorResult(
    'UNKNOWN_TOOL',
    `no tool ${quote(name)} (known: ${known.join(', ') || 'none'})`,
  )
}

async function runTool(tool: Tool, call: ToolCall, options: ExecuteOptions): Promise<ToolResult> {
  // A listener may have held the call back until after the cancel.
  if (call.signal.aborted) return abortedResult(call.name)
  const parsed = tool.parameters.safeParse(call.input)
  if (!parsed.success) {
    const problems = typeof call.input === 'string' ? notAnObject : z.prettifyError(parsed.error)
    return errorResult(
      'INVALID_ARGUMENTS',
      `invalid arguments for tool "${call.name}":\n${problems}`,
    )
  }
  const { agent, callId, signal } = call
  try {
    const update = (progress: ToolProgress): void => options.update(call, progress)
    return checked(call, await tool.execute(parsed.data, { agent, callId, signal, update }))
  } catch (error) {
    return failedResult(call, error)
  }
}

/** A text is what the model wrote where that could not be parsed, or kept. */
const notAnObject =
  '✖ Invalid input: expected a JSON object, nested less than 100 deep and with finite numbers, received string'

/** Plain JavaScript can return anything: a call must get a result all the same, which can be read back. */
function checked({ name }: ToolCall, result: ToolResult | string | undefined): ToolResult {
  if (typeof result === 'string') return textResult(result)
  if (result !== undefined && isResult(result)) return result
  return errorResult(
    'INVALID_RESULT',
    `tool "${name}" gave no result: it must return a text or { content, isError }, content being a list of { type: "text", text } or { type: "image", mediaType, data }`,
  )
}

function isResult(result: Partial<ToolResult> | null): result is ToolResult {
  const { content, isError } = result ?? {}
  return Array.isArray(content) && content.every(isBlock) && typeof isError === 'boolean'
}

function isBlock(block: Partial<TextBlock | ImageBlock> | null): boolean {
  if (block?.type === 'text') return typeof block.text === 'string'
  if (block?.type !== 'image') return false
  return typeof block.mediaType === 'string' && typeof block.data === 'string'
}

function failedResult(call: ToolCall, error: unknown): ToolResult {
  if (call.signal.aborted) return abortedResult(call.name)
  const { code, message } = failureOf(error, 'TOOL_FAILED')
  return errorResult(code, `tool "${call.name}" failed: ${message}`)
}
