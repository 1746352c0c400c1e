/** Makes tool results. */
import type { ToolResult } from './types.ts'

export function textResult(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: false }
}

export function errorResult(code: string, text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true, code }
}
