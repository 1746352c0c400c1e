/** One prompt, one answer. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import { within } from '@deepseek-ai/dsh-llm'
import type { TurnEnd } from '@deepseek-ai/dsh-session'
import { createPresenter } from './presenters.ts'
import { openAgent, type Serving, sessionIdOf } from './serving.ts'

const interruptedCode = 130
/** How long the answer waits until the agents are gone, in ms: what they end with belongs to it. */
const disposeWaitMs = 10_000

/** Asks once and prints what came of it; SIGINT cancels, a second one leaves at once. */
export async function serveOnce(serving: Serving & { readonly prompt: string }): Promise<number> {
  const id = sessionIdOf(serving.request)
  const presenter = createPresenter(serving, id)
  try {
    const handle = await openAgent(serving, id)
    const turn = (async () => {
      const end = await handle.agent.send(serving.prompt)
      // A backend that never lets go of a child must not hold the answer: the command ends it later.
      await within(disposeWaitMs, handle.dispose())
      return end
    })()
    const end = await Promise.race([turn, secondInterrupt(serving, handle.agent)])
    if (end === undefined) return interruptedCode
    presenter.stop()
    await presenter.finish(end)
    return codeOf(end)
  } finally {
    presenter.stop()
  }
}

/** Cancels the turn on SIGINT or when the command ends; settles when SIGINT comes again. */
function secondInterrupt({ control }: Serving, agent: Agent): Promise<undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  let count = 0
  control.onInterrupt(() => {
    count += 1
    agent.cancel('interrupted')
    if (count > 1) resolve(undefined)
  })
  const onAbort = (): void => agent.cancel('the command ends')
  if (control.signal.aborted) onAbort()
  else control.signal.addEventListener('abort', onAbort, { once: true })
  return promise
}

function codeOf({ reason }: TurnEnd): number {
  if (reason === 'completed') return 0
  return reason === 'aborted' ? interruptedCode : 1
}
