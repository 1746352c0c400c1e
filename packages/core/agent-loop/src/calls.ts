/** The tool calls of one message: each is logged, and gets exactly one result. */
import { messageOf, quote, type ToolCallBlock } from '@deepseek-ai/dsh-llm'
import {
  abortedResult,
  errorResult,
  type ToolCall,
  type ToolResult,
  ToolError,
} from '@deepseek-ai/dsh-tools'
import type { Reply } from './reply.ts'
import type { Turn } from './types.ts'

/**
 * Carries out the calls of a reply, parallel neighbours at the same time; results are logged in
 * call order. Calls of a reply that did not finish are logged as not executed.
 * @returns whether a result ended the turn.
 * @throws ToolError `NOT_EXECUTED` when the session could not be stored, after the last result.
 */
export async function runCalls(turn: Turn, { calls, finish }: Reply): Promise<boolean> {
  const isCut = finish !== 'stop' && finish !== 'tool-calls'
  let whyNot = isCut ? 'the message was cut short' : undefined
  let failure: ToolError | undefined
  let isEnded = false
  for (const group of groupsOf(turn, calls)) {
    logCalls(turn, group)
    if (whyNot === undefined && !turn.signal.aborted) {
      failure = await storeFailure(turn)
      if (failure !== undefined) whyNot = 'the session could not be stored'
    }
    if (turn.signal.aborted) {
      logResults(turn, group, ({ name }) => abortedResult(name))
    } else if (whyNot !== undefined) {
      const result = errorResult('NOT_EXECUTED', `not executed: ${whyNot}`)
      logResults(turn, group, () => result)
    } else {
      isEnded = await runGroup(turn, group)
      if (isEnded) whyNot = 'the turn was completed before it'
    }
  }
  if (failure !== undefined) throw failure
  return isEnded
}

/** A call is durable before it runs: a crash must lose neither the call nor what it did. */
async function storeFailure({ agent, services }: Turn): Promise<ToolError | undefined> {
  try {
    await services.sessions.flush(agent.session)
    return undefined
  } catch (error) {
    const message = `session "${agent.id}" could not be stored: ${messageOf(error)}`
    return new ToolError('NOT_EXECUTED', message, { cause: error })
  }
}

/** Neighbours that may run at the same time; every other call is a group of its own. */
function groupsOf({ agent, services }: Turn, calls: readonly ToolCallBlock[]): ToolCallBlock[][] {
  const groups: ToolCallBlock[][] = []
  let isOpen = false
  for (const call of calls) {
    const found = services.toolTable.lookup(agent, call.name)
    const isParallel = found.kind === 'found' && found.tool.parallel === true
    if (isParallel && isOpen) groups.at(-1)?.push(call)
    else groups.push([call])
    isOpen = isParallel
  }
  return groups
}

async function runGroup(turn: Turn, group: readonly ToolCallBlock[]): Promise<boolean> {
  const grace = createGrace(turn)
  try {
    const running = group.map((call) => ({ call, result: resultOf(turn, call, grace.isOver) }))
    let isEnded = false
    for (const { call, result } of running) {
      const { endsTurn } = logResult(turn, call, await result)
      isEnded ||= endsTurn === true
    }
    return isEnded
  } finally {
    grace.dispose()
  }
}

async function resultOf(
  turn: Turn,
  { callId, name, input }: ToolCallBlock,
  isOver: Promise<'over'>,
): Promise<ToolResult> {
  const { agent, signal, services } = turn
  const call: ToolCall = { agent, callId, name, input, signal }
  // The executor promises never to reject; a call without a result would spoil the session for good.
  const running = services.runTool(call).catch((error: unknown) => {
    const text = `tool ${quote(name)} failed: ${messageOf(error)}`
    return errorResult('TOOL_FAILED', text)
  })
  const result = await Promise.race([running, isOver])
  if (result !== 'over') return result
  turn.leave(running)
  return abortedResult(name)
}

/** The time that tools have, after a cancel, to clean up before their turn ends without them. */
function createGrace({ signal, services }: Turn): { isOver: Promise<'over'>; dispose(): void } {
  const { promise, resolve } = Promise.withResolvers<'over'>()
  let timer: NodeJS.Timeout | undefined
  const start = (): void => {
    timer = setTimeout(resolve, services.abortGraceMs, 'over')
  }
  signal.addEventListener('abort', start, { once: true })
  return {
    isOver: promise,
    dispose: () => {
      signal.removeEventListener('abort', start)
      clearTimeout(timer)
    },
  }
}

function logCalls({ agent }: Turn, group: readonly ToolCallBlock[]): void {
  for (const { callId, name, input } of group) {
    agent.session.append('tool/call', { callId, name, input })
  }
}

function logResults(
  turn: Turn,
  group: readonly ToolCallBlock[],
  resultFor: (call: ToolCallBlock) => ToolResult,
): void {
  for (const call of group) logResult(turn, call, resultFor(call))
}

/** @returns what was logged: a result that no log can hold becomes an error. */
function logResult(turn: Turn, call: ToolCallBlock, result: ToolResult): ToolResult {
  const { session } = turn.agent
  const { callId, name } = call
  try {
    const { content, isError, code } = result
    session.append('tool/result', { callId, name, content, isError, code })
    return result
  } catch (error) {
    const text = `tool ${quote(name)} gave a result that cannot be logged: ${messageOf(error)}`
    const instead = errorResult('INVALID_RESULT', text)
    session.append('tool/result', { callId, name, ...instead })
    return instead
  }
}
