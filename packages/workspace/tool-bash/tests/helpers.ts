/** A scripted executor, and the result of a call as a model gets it. */
import type { BashExecutor, BashRequest, BashResult } from '@deepseek-ai/dsh-bash'
import type { SessionEvent } from '@deepseek-ai/dsh-session'

export function createResult(overrides: Partial<BashResult> = {}): BashResult {
  return {
    exitCode: 0,
    output: '',
    isTruncated: false,
    isTimedOut: false,
    isAborted: false,
    durationMs: 1,
    ...overrides,
  }
}

/** An executor that says `pieces` and then gives `result`. */
export function createExecutor(
  result: BashResult = createResult(),
  pieces: readonly string[] = [],
): BashExecutor & { readonly requests: BashRequest[] } {
  const requests: BashRequest[] = []
  return {
    name: 'scripted',
    timeoutMs: 1000,
    maxTimeoutMs: 1000,
    requests,
    execute: async (request) => {
      requests.push(request)
      for (const piece of pieces) request.onOutput?.(piece)
      return result
    },
  }
}

/** The only tool result of a log. */
export function resultOf(events: Iterable<SessionEvent>) {
  for (const event of events) {
    if (event.type !== 'tool/result') continue
    const { content, isError, code } = event.data
    const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    return { text, isError, code }
  }
  throw new Error('there is no tool result')
}
