/** What holds for every session log, checked one event at a time. */
import type { SessionEvent } from '@deepseek-ai/dsh-session'

/** Checks the events of one log in order; constant work per event. */
export class LogChecker {
  private seq: number
  private isTurnOpen = false
  private step = 0
  private isStepOpen = false
  private isAnswered = false
  /** Calls of the step's message that are not yet logged as calls. */
  private announced: string[] = []
  /** Logged calls without a result, in call order. */
  private open: string[] = []

  /** @param from the `seq` of the first event to come. */
  constructor(from = 0) {
    this.seq = from
  }

  /** What is wrong with the event, for a person; absent when it fits. */
  check(event: SessionEvent): string | undefined {
    const expected = this.seq
    this.seq = event.seq + 1
    if (event.seq !== expected) return `seq is ${event.seq}, expected ${expected}`
    return this.checkOrder(event)
  }

  private checkOrder(event: SessionEvent): string | undefined {
    switch (event.type) {
      case 'turn/start':
        if (this.isTurnOpen) return 'a turn starts inside a turn'
        this.isTurnOpen = true
        this.step = 0
        return undefined
      case 'turn/end':
        return this.endTurn()
      case 'step/start':
        return this.startStep(event.data.step)
      case 'step/end':
        return this.endStep(event.data.step)
      case 'user/message':
      case 'context/message':
        if (!this.isTurnOpen) return 'a message outside a turn'
        return this.isStepOpen ? 'a user message inside a step' : undefined
      case 'assistant/message':
        if (!this.isStepOpen) return 'an assistant message outside a step'
        if (this.isAnswered) return 'a second assistant message in a step'
        this.isAnswered = true
        for (const block of event.data.content) {
          if (block.type === 'tool-call') this.announced.push(block.callId)
        }
        return undefined
      case 'tool/call':
        if (!remove(this.announced, event.data.callId)) return 'a call that no message announced'
        this.open.push(event.data.callId)
        return undefined
      case 'tool/result':
        return this.answer(event.data.callId)
    }
  }

  private startStep(step: number): string | undefined {
    if (!this.isTurnOpen) return 'a step outside a turn'
    if (this.isStepOpen) return 'a step starts inside a step'
    if (step !== this.step + 1) return `step is ${step}, expected ${this.step + 1}`
    this.isStepOpen = true
    this.isAnswered = false
    this.step = step
    return undefined
  }

  private endStep(step: number): string | undefined {
    if (!this.isStepOpen || step !== this.step) return 'a step ends that did not start'
    this.isStepOpen = false
    const missing = [...this.announced, ...this.open]
    this.announced = []
    this.open = []
    return missing.length === 0 ? undefined : `calls without a result: ${missing.join(', ')}`
  }

  private endTurn(): string | undefined {
    if (!this.isTurnOpen) return 'a turn ends that did not start'
    this.isTurnOpen = false
    if (!this.isStepOpen) return undefined
    this.isStepOpen = false
    return 'a turn ends inside a step'
  }

  private answer(callId: string): string | undefined {
    const [next] = this.open
    if (!remove(this.open, callId)) return 'a result without an open call'
    return next === callId ? undefined : `a result out of order, expected one for "${next}"`
  }
}

/** What is removed is the first, as a rule. */
function remove(list: string[], item: string): boolean {
  const index = list.indexOf(item)
  if (index !== -1) list.splice(index, 1)
  return index !== -1
}

/** All that is wrong with a whole log, one line each; empty when it is sound. */
export function violationsOf(events: Iterable<SessionEvent>): string[] {
  const checker = new LogChecker()
  const violations: string[] = []
  let last: SessionEvent | undefined
  for (const event of events) {
    last = event
    const problem = checker.check(event)
    if (problem !== undefined) violations.push(`${event.type} at seq ${event.seq}: ${problem}`)
  }
  if (last !== undefined && last.type !== 'turn/end') violations.push('the last turn never ended')
  return violations
}
