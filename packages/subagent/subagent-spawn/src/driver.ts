/** Runs a child agent in this process: what spawn and fork have in common. */
import type { AgentOptions, AgentRegistry } from '@deepseek-ai/dsh-agent'
import type { SessionPrefix, TurnEnd } from '@deepseek-ai/dsh-session'
import {
  SubagentError,
  type SubagentRun,
  type SubagentRunContext,
  type SubagentStartRequest,
} from '@deepseek-ai/dsh-subagent'
import type { ToolTable } from '@deepseek-ai/dsh-tools'
import { resultOf } from './result.ts'
import { childScope } from './scope.ts'
import { StructuredOutput, structuredHint } from './structured.ts'

/** The plain registries that a run works with, resolved once per provider. */
export interface InProcessServices {
  readonly agents: AgentRegistry
  readonly tools: ToolTable
  readonly warn: (message: string) => void
}

export interface InProcessStart {
  readonly provider: string
  readonly request: SubagentStartRequest
  readonly run: SubagentRunContext
  /** The events that the child starts with; absent: none. */
  readonly seed?: SessionPrefix | undefined
}

/**
 * Creates a child agent with a session of its own and gives it the prompt.
 * @throws SubagentError `INVALID_REQUEST`; AgentError and LlmError as {@link AgentRegistry.create};
 * nothing is left behind then.
 */
export function startInProcessRun(services: InProcessServices, start: InProcessStart): SubagentRun {
  const { provider, request, run, seed } = start
  const { parent, callId, label, agentOptions, outputSchema, toolFilter: filter } = request
  const structured = outputSchema && new StructuredOutput(outputSchema)
  const toolFilters = [
    ...(parent.session.header.origin?.toolFilters ?? []),
    ...(filter === undefined ? [] : [filter]),
  ]
  const toolScope = childScope({ ...services, parent, filter, own: structured?.tool })
  const handle = services.agents.create({
    id: run.childId,
    cwd: parent.cwd,
    parentSession: parent.id,
    delegationDepth: run.depth,
    origin: {
      provider,
      ...(callId !== undefined && { callId }),
      ...(label !== undefined && { label }),
      // A resume has only the header to go by.
      ...(toolFilters.length > 0 && { toolFilters }),
    },
    // Spread, because other packages merge options of their own into AgentOptions.
    options: { ...parent.options, ...givenOf(agentOptions), subagentDepth: run.depth },
    ...(toolScope !== undefined && { toolScope }),
    ...(seed !== undefined && { seed }),
  })
  const { agent } = handle
  const { promise: ended, resolve: end, reject } = Promise.withResolvers<TurnEnd>()
  let isCancelled = false
  const turn = agent.send([
    { type: 'text', text: request.prompt },
    ...(structured === undefined ? [] : [{ type: 'text' as const, text: structuredHint }]),
  ])
  turn.then(end, reject)
  return {
    id: agent.id,
    result: ended.then((how) => resultOf(agent.session, how, structured)),
    cancel: (reason) => {
      isCancelled = true
      agent.cancel(reason)
      // By then what had been streamed is logged; a tool that ignores the cancel is not waited for.
      setImmediate(end, { reason: 'aborted' })
    },
    dispose: () => handle.dispose(),
    sendMessage: async (text) => {
      // Nobody would wait for a turn after that of the prompt.
      if (isCancelled || agent.session.lastTurnEnd !== undefined) {
        const message = `run "${agent.id}" is over: start another one`
        throw new SubagentError('INVALID_REQUEST', message)
      }
      void agent.steer(text)
    },
  }
}

/** What is `undefined` was not given: spread over the parent's options, it would erase them. */
function givenOf(options: Partial<AgentOptions> = {}): Partial<AgentOptions> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}
