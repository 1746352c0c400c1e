/** One turn: from accepted input to exactly one `turn/end`, whatever throws. */
import { type Failure, failureOf } from '@deepseek-ai/dsh-llm'
import type { Session, TurnEnd } from '@deepseek-ai/dsh-session'
import { runCalls } from './calls.ts'
import { ask, type Reply } from './reply.ts'
import type { Turn } from './types.ts'

/** Runs one turn to its end. Never rejects: whatever happens becomes the turn's end. */
export async function runTurn(turn: Turn): Promise<TurnEnd> {
  open(turn)
  const end = await runSteps(turn).catch((error: unknown) => endOf(turn, error))
  return close(turn, end)
}

async function runSteps(turn: Turn): Promise<TurnEnd> {
  const { session } = turn.agent
  const { maxSteps } = turn.options
  // Half a surrogate pair from a section would make a provider refuse every request.
  const system = turn.signal.aborted ? '' : turn.services.prompt.assemble(turn.agent).toWellFormed()
  for (let step = 1; step <= maxSteps; step += 1) {
    turn.signal.throwIfAborted()
    session.append('step/start', { step })
    let end: TurnEnd | undefined
    try {
      const reply = await ask(turn, system)
      const isEnded = await runCalls(turn, reply)
      end = isEnded ? { reason: 'completed' } : endOfReply(reply)
    } finally {
      session.append('step/end', { step })
    }
    turn.signal.throwIfAborted()
    if (end !== undefined && end.reason !== 'completed') return end
    // What was steered needs one more step; where there is none, it opens the next turn.
    const isSteered = step < maxSteps && turn.drainSteering()
    if (end !== undefined && !isSteered) return end
  }
  const message = `stopped after ${maxSteps} steps: the turn is longer than maxSteps allows`
  return { reason: 'max-steps', error: { code: 'MAX_STEPS', message } }
}

const callsMissing: Failure = {
  code: 'MODEL_FAILED',
  message: 'the model announced tool calls and made none: send the input again',
}

/** Absent when the turn goes on. */
function endOfReply({ calls, finish, error }: Reply): TurnEnd | undefined {
  switch (finish) {
    case 'stop':
      return calls.length === 0 ? { reason: 'completed' } : undefined
    case 'tool-calls':
      return calls.length === 0 ? { reason: 'error', error: callsMissing } : undefined
    case 'max-tokens':
    case 'refusal':
    case 'aborted':
    case 'error':
      return { reason: finish, ...(error !== undefined && { error }) }
  }
}

function endOf(turn: Turn, error: unknown): TurnEnd {
  if (!turn.signal.aborted) return { reason: 'error', error: failureOf(error, 'TURN_FAILED') }
  const reason: unknown = turn.signal.reason
  return typeof reason === 'string'
    ? { reason: 'aborted', error: { code: 'ABORTED', message: reason } }
    : { reason: 'aborted' }
}

function open({ agent, options, input }: Turn): void {
  const { session } = agent
  session.append('turn/start', { turn: session.turnCount + 1, model: options.model })
  for (const content of input) session.append('user/message', { content })
}

async function close({ agent, services }: Turn, end: TurnEnd): Promise<TurnEnd> {
  const logged = logEnd(agent.session, end)
  try {
    await services.sessions.flush(agent.session)
  } catch (error) {
    services.warn(`the last turn of session "${agent.id}" was not stored`, error)
  }
  return logged
}

/** @returns what was logged: an end that no log can hold becomes an error. */
function logEnd(session: Session, end: TurnEnd): TurnEnd {
  try {
    session.append('turn/end', end)
    return end
  } catch (error) {
    const instead: TurnEnd = { reason: 'error', error: failureOf(error, 'TURN_FAILED') }
    session.append('turn/end', instead)
    return instead
  }
}
