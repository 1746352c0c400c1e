/** Arithmetic on token counts. */
import type { Usage } from './types.ts'

export const noUsage: Usage = Object.freeze({ inputTokens: 0, outputTokens: 0 })

/** The sum; an optional count is present when either side has it. */
export function addUsage(a: Usage, b: Usage): Usage {
  if (a === noUsage) return b
  if (b === noUsage) return a
  const cachedInputTokens = addOptional(a.cachedInputTokens, b.cachedInputTokens)
  const reasoningTokens = addOptional(a.reasoningTokens, b.reasoningTokens)
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    ...(cachedInputTokens !== undefined && { cachedInputTokens }),
    ...(reasoningTokens !== undefined && { reasoningTokens }),
  }
}

function addOptional(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0)
}
