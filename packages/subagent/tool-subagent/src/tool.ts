/** The tool through which a model delegates. */
import { isHarnessError } from '@deepseek-ai/dsh-llm'
import type { SessionId } from '@deepseek-ai/dsh-session'
import {
  SubagentError,
  type SubagentErrorCode,
  type SubagentProvider,
  type SubagentRun,
  type SubagentService,
  type SubagentStartRequest,
} from '@deepseek-ai/dsh-subagent'
import type { Tool, ToolExecution, ToolResult } from '@deepseek-ai/dsh-tools'
import { z } from 'zod'
import { answerOf, refusalOf } from './answer.ts'
import { oneLine } from './bound.ts'

const maxLabelLength = 100

/** What the operator adds to each request. */
export type RequestOptions = Pick<
  SubagentStartRequest,
  'agentOptions' | 'maxDepth' | 'toolFilter' | 'timeoutMs' | 'idleTimeoutMs'
>

export interface SubagentToolSpec {
  readonly name: string
  readonly subagents: Pick<SubagentService, 'start'>
  readonly request: RequestOptions
  /** Bound of a result, in bytes. */
  readonly maxOutputBytes: number
  /** Whether the log of a child is kept, so that its full text can be read there. */
  readonly isStored: (id: SessionId) => boolean
  /** Tells of the life of a run until the returned function is called. */
  readonly follow: (run: SubagentRun, update: ToolExecution['update']) => () => void
}

/** The exact arguments that the model gives. */
export type SubagentToolParameters = z.ZodObject<{ description: z.ZodString; prompt: z.ZodString }>

/**
 * Makes the tool for a provider; its wording says what the children of the provider know.
 * @throws SubagentError `UNSUPPORTED_CAPABILITY` when the options ask for what the provider cannot do.
 */
export function createSubagentTool(
  spec: SubagentToolSpec,
  provider: SubagentProvider,
): Tool<SubagentToolParameters> {
  const request = requestFor(provider, spec.request)
  const wording = provider.inheritsParentContext ? inheritingWording : freshWording
  return {
    name: spec.name,
    description: wording.tool,
    parameters: z.object({
      description: z.string().describe('The task in three to six words, for the user to see'),
      prompt: z.string().trim().min(1, 'must not be empty').describe(wording.prompt),
    }),
    parallel: true,
    execute: ({ description, prompt }, exec) => {
      const label = oneLine(description, maxLabelLength)
      const { agent: parent, callId, signal } = exec
      const named = label === '' ? {} : { label }
      return delegate(
        spec,
        provider,
        { ...request, ...named, prompt, parent, callId, signal },
        exec,
      )
    },
  }
}

const defaultMaxDepth = 3

function requestFor(
  { name, capabilities }: SubagentProvider,
  options: RequestOptions,
): RequestOptions {
  const unmet =
    options.maxDepth !== undefined && !capabilities.depthLimit
      ? 'maxDepth'
      : options.toolFilter !== undefined && !capabilities.toolFilter
        ? 'toolFilter'
        : undefined
  if (unmet !== undefined) {
    throw new SubagentError(
      'UNSUPPORTED_CAPABILITY',
      `subagent provider "${name}" does not support "${unmet}": leave it out or use another provider`,
    )
  }
  return capabilities.depthLimit ? { maxDepth: defaultMaxDepth, ...options } : options
}

async function delegate(
  { subagents, maxOutputBytes, isStored, follow }: SubagentToolSpec,
  provider: SubagentProvider,
  request: SubagentStartRequest,
  exec: ToolExecution,
): Promise<ToolResult> {
  let run: SubagentRun
  try {
    run = subagents.start(provider.name, request)
  } catch (error) {
    if (!isRefusal(error)) throw error
    return refusalOf(error.code, error.message)
  }
  let unfollow: (() => void) | undefined
  try {
    unfollow = follow(run, exec.update)
    const result = await run.result
    return answerOf(run.id, result, maxOutputBytes, isStored(run.id))
  } finally {
    unfollow?.()
    await run.dispose()
  }
}

/** By name and not by class, which differs between copies of the package. */
function isRefusal(error: unknown): error is SubagentError {
  return isHarnessError(error) && refusals.has(error.code)
}

const refusals: ReadonlySet<string> = new Set<SubagentErrorCode>([
  'DEPTH_EXCEEDED',
  'TOO_MANY_RUNS',
  'INVALID_REQUEST',
  'NO_PROVIDER',
  'UNSUPPORTED_CAPABILITY',
])

const freshWording = {
  tool: `Delegates a task to a child agent and returns its answer. The child starts fresh: it sees nothing of this conversation, only your prompt. Use it for work that can be described completely and whose details you do not need here. Calls in one message run at the same time; give them independent tasks. The child does the work by itself and cannot ask you anything.`,
  prompt: `The whole task, standing on its own: the goal, every fact and path that the child needs, and what it must answer with`,
}

const inheritingWording = {
  tool: `Delegates a task to a child agent and returns its answer. The child already sees this conversation up to your last finished turn, but nothing of the present turn. Use it for work that needs that background and whose details you do not need here. Calls in one message run at the same time; give them independent tasks. The child does the work by itself and cannot ask you anything.`,
  prompt: `Only what is new: the task, what happened in the present turn that the child needs, and what it must answer with; do not repeat the conversation`,
}
