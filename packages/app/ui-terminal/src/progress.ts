/** Shows what an agent and its children do: tool calls as lines, each running child as a live line. */
import type { Context } from '@deepseek-ai/cordis'
import { sanitize } from '@deepseek-ai/dsh-app'
import type { JsonValue } from '@deepseek-ai/dsh-llm'
import type { SessionEvent, SessionEventData } from '@deepseek-ai/dsh-session'
import { type Family, followFamily, type Member } from './family.ts'
import type { Screen } from './screen.ts'
import { blockText, formatMs, formatTokens, oneLine } from './text.ts'

const redrawMs = 200
/** Why a call failed does not always come first. */
const failureRows = 3

/** Shows the family on the screen until the returned function is called. */
export function showChildren(ctx: Context, family: Family, screen: Screen): () => void {
  let timer: NodeJS.Timeout | undefined
  const draw = (): void => {
    const running = family.running()
    screen.live(running.map((member) => lineOf(member, screen.columns)))
    if (running.length === 0) {
      clearInterval(timer)
      timer = undefined
    } else if (screen.isLive) {
      timer ??= setInterval(draw, redrawMs).unref()
    }
  }
  const unfollow = followFamily(ctx, family, {
    started: (member) => {
      if (!screen.isLive) screen.line(startLineOf(member, screen.columns))
      draw()
    },
    ended: (member, { stopReason }) => {
      const style = stopReason === 'completed' ? 'dim' : 'yellow'
      screen.line(endLineOf(member, stopReason, screen.columns), style)
      draw()
    },
  })
  return () => {
    unfollow()
    clearInterval(timer)
    screen.live([])
  }
}

/** What of a message is shown as progress. */
export interface ShowOptions {
  readonly showReasoning: boolean
  /** The text of messages that are not the last one; not wanted where text is streamed. */
  readonly showText: boolean
}

/** Shows one event of the agent's own log, if it is progress. */
export function showEvent(screen: Screen, event: SessionEvent, options: ShowOptions): void {
  switch (event.type) {
    case 'assistant/message':
      showMessage(screen, event.data, options)
      break
    case 'tool/call': {
      const { name, input } = event.data
      screen.line(oneLine(`* ${name} ${argumentsOf(input)}`, screen.columns), 'cyan')
      break
    }
    case 'tool/result': {
      const { name, content, isError } = event.data
      if (!isError) break
      screen.line(
        oneLine(`! ${name}: ${blockText(content)}`, failureRows * screen.columns),
        'yellow',
      )
      break
    }
    default:
      break
  }
}

/** What an agent says before its last message is progress; the last one is the answer. */
function showMessage(
  screen: Screen,
  { content, finish }: SessionEventData['assistant/message'],
  { showReasoning, showText }: ShowOptions,
): void {
  for (const block of content) {
    if (block.type === 'reasoning' && showReasoning) screen.line(sanitize(block.text), 'dim')
    if (block.type === 'text' && showText && finish === 'tool-calls')
      screen.line(sanitize(block.text), 'dim')
  }
}

function startLineOf(member: Member, columns: number): string {
  return oneLine(`${indent(member)}${nameOf(member)} started`, columns)
}

function lineOf(member: Member, columns: number): string {
  const doing = `${indent(member)}${nameOf(member)} | ${member.doing}`
  const wholeMs = Math.floor(elapsedOf(member) / 1000) * 1000
  return withFacts(doing, ` | ${formatMs(wholeMs)}`, member, columns)
}

function endLineOf(member: Member, stopReason: string, columns: number): string {
  const facts = `: ${stopReason} | ${formatMs(elapsedOf(member))}`
  return withFacts(`${indent(member)}${nameOf(member)}`, facts, member, columns)
}

/** The facts stay whole when the line is short. */
function withFacts(text: string, facts: string, { tokens }: Member, columns: number): string {
  const tail = `${facts} | ${formatTokens(tokens)}`
  return `${oneLine(text, Math.max(8, columns - tail.length))}${tail}`
}

function elapsedOf({ startedAt }: Member): number {
  return performance.now() - startedAt
}

function nameOf({ info }: Member): string {
  return `${info.label ?? 'child'} [${info.provider}]`
}

function indent({ depth }: Member): string {
  return `${'-'.repeat(depth)}> `
}

function argumentsOf(input: JsonValue): string {
  if (typeof input !== 'object' || input === null) return JSON.stringify(input)
  return Object.entries(input)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
}
