/** The tool calls of one message: each is logged, and gets exactly one result. */
import type { ToolCallBlock } from '@deepseek-ai/dsh-llm'
import {
  abortedResult,
  errorResult,
  type ToolCall,
  type ToolResult,
  ToolError,
} from '@deepseek-ai/dsh-tools'
import type { Reply } from './reply.ts'
import type { Turn } from './turn.ts'

/**
 * Carries out the calls of a reply, parallel neighbours at the same time; results are logged in
 * call order. Calls of a reply that did not finish are logged as not executed.
 * @returns whether a result ended the turn.
 */
export async function runCalls(turn: Turn, { calls, finish }: Reply): Promise<boolean> {
  let isEnded = false
  const mayRun = finish === 'stop' || finish === 'tool-calls'
  for (const group of groupsOf(turn, calls)) {
    logCalls(turn, group)
    if (turn.signal.aborted) logResults(turn, group, ({ name }) => abortedResult(name))
    else if (!mayRun) logResults(turn, group, () => notExecuted('the message was cut short'))
    else if (isEnded) logResults(turn, group, () => notExecuted('the turn was completed before it'))
    else isEnded = await runGroup(turn, group)
  }
  return isEnded
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
  const { agent, services } = turn
  try {
    // Durable before it runs: a crash must lose neither the call nor what it did.
    await services.sessions.flush(agent.session)
  } catch (error) {
    logResults(turn, group, () => notExecuted('the session could not be stored'))
    throw new ToolError('NOT_EXECUTED', `session "${agent.id}" could not be stored`, {
      cause: error,
    })
  }
  const grace = createGrace(turn)
  try {
    const running = group.map((call) => resultOf(turn, call, grace.isOver))
    let isEnded = false
    for (const [index, call] of group.entries()) {
      const result = (await running[index]) ?? abortedResult(call.name)
      logResult(turn, call, result)
      isEnded ||= result.endsTurn === true
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
  const running = services.runTool(call)
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
  if (signal.aborted) start()
  else signal.addEventListener('abort', start, { once: true })
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

function logResult({ agent }: Turn, { callId, name }: ToolCallBlock, result: ToolResult): void {
  const { content, isError, code } = result
  agent.session.append('tool/result', { callId, name, content, isError, code })
}

function notExecuted(why: string): ToolResult {
  return errorResult('NOT_EXECUTED', `not executed: ${why}`)
}
