/** Makes the tool over an executor, and words its results for a model. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { BashExecutor, BashResult } from '@deepseek-ai/dsh-bash'
import { errorResult, textResult, type Tool, type ToolResult } from '@deepseek-ai/dsh-tools'
import { z } from 'zod'

/** Longest line of progress, in UTF-16 units. */
const maxLineLength = 200

const description =
  'Runs a bash command in the workspace folder and returns what it prints, stdout and stderr ' +
  'together. Each call is a new shell in that folder: no change of folder, variable or background ' +
  'process outlives it. There is no input to answer prompts: use flags instead. A long output is ' +
  'cut in the middle; the result then names a file that has all of it.'

function parametersFor({ timeoutMs, maxTimeoutMs }: BashExecutor) {
  const limit = `default ${timeoutMs}, at most ${maxTimeoutMs}`
  return z.object({
    command: z.string().trim().min(1).describe('The command, of one or more lines.'),
    timeoutMs: z
      .int()
      .min(1)
      .max(maxTimeoutMs)
      .optional()
      .describe(`Milliseconds after which the command is ended with all its processes; ${limit}.`),
  })
}

/** The tool for {@link BashExecutor.execute}; a command runs in its agent's folder. */
export function bashTool(
  name: string,
  executor: BashExecutor,
): Tool<ReturnType<typeof parametersFor>> {
  return {
    name,
    description,
    parameters: parametersFor(executor),
    execute: async (
      { command, timeoutMs = executor.timeoutMs },
      { agent, callId, signal, update },
    ) => {
      const { cwd }: Agent = agent
      const onOutput = (text: string): void => {
        const line = lastLineOf(text)
        if (line !== '') update({ text: line })
      }
      const caller = { sessionId: agent.id, callId }
      const request = { command, cwd, timeoutMs, signal, onOutput, caller }
      const result = await executor.execute(request)
      return toolResultOf(result, timeoutMs, executor.maxTimeoutMs)
    },
  }
}

function toolResultOf(result: BashResult, timeoutMs: number, maxTimeoutMs: number): ToolResult {
  const { output, exitCode, signal, isAborted, isTimedOut } = result
  const text = (note: string): string => (output === '' ? note : `${output.trimEnd()}\n${note}`)
  if (isAborted) {
    return errorResult(
      'ABORTED',
      text('[aborted before the command ended; its processes are gone]'),
    )
  }
  if (isTimedOut) {
    const remedy =
      timeoutMs < maxTimeoutMs
        ? `a longer timeoutMs, up to ${maxTimeoutMs}, may help`
        : 'do less in one call'
    const note = `[not ended after ${timeoutMs} ms, so it was ended with its processes; ${remedy}]`
    return errorResult('TIMED_OUT', text(note))
  }
  if (exitCode === undefined) {
    return errorResult('KILLED', text(`[the shell was killed by ${signal ?? 'nobody knows what'}]`))
  }
  if (exitCode !== 0) return errorResult('EXIT_NONZERO', text(`[exit code ${exitCode}]`))
  return textResult(output === '' ? '[exit code 0, no output]' : output)
}

function lastLineOf(text: string): string {
  const trimmed = text.trimEnd()
  const line = trimmed.slice(Math.max(trimmed.lastIndexOf('\n'), trimmed.lastIndexOf('\r')) + 1)
  return line.slice(0, maxLineLength).toWellFormed()
}
