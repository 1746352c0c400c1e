/** Sessions as text for a terminal: a tree of all, and the transcript of one. */
import { sanitize } from '@deepseek-ai/dsh-app'
import type { ContentBlock } from '@deepseek-ai/dsh-llm'
import type { SessionEvent, SessionHeader, SessionId } from '@deepseek-ai/dsh-session'
import type { SessionFile, SessionSummary } from '@deepseek-ai/dsh-session-jsonl'

/** A table with one line per session, children below their parents; `now` is epoch ms. */
export function renderSessionTree(sessions: readonly SessionSummary[], now: number): string[] {
  const rows = treeOf(sessions).map(({ branch, session }) => [
    `${branch}${session.header.id}`,
    session.state.replace(/\s+/g, ' '),
    ageOf(now - session.updatedAt),
    tokensOf(session),
    titleOf(session),
  ])
  const table = [['SESSION', 'STATE', 'AGE', 'TOKENS', 'TITLE'], ...rows]
  const widths = [0, 1, 2, 3].map((column) =>
    Math.max(...table.map((cells) => cells[column]?.length ?? 0)),
  )
  return table.map((cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** What was said and done in a session, line by line; what its agents wrote is indented. */
export function renderTranscript({ header, events, torn }: SessionFile): string[] {
  const isOpen = events.length > 0 && events.at(-1)?.type !== 'turn/end'
  return [
    ...headerLines(header),
    ...events.flatMap(linesOf),
    ...(isOpen ? ['turn has not ended'] : []),
    ...(torn === undefined ? [] : [`line ${torn.line} of the file is torn and left out`]),
  ]
}

/** Children that are deeper still stand below each other. */
const maxIndent = 60

interface Row {
  readonly branch: string
  readonly session: SessionSummary
}

/** Depth first. A session whose parent is not there stands at the top. */
function treeOf(sessions: readonly SessionSummary[]): Row[] {
  const ids = new Set(sessions.map(({ header }) => header.id))
  const isTop = ({ header: { id, parentSession } }: SessionSummary): boolean =>
    parentSession === undefined || parentSession === id || !ids.has(parentSession)
  const children = Map.groupBy(sessions, ({ header }) => header.parentSession)
  const seen = new Set<SessionId>()
  const rows: Row[] = []
  const add = (session: SessionSummary, branch: string, indent: string): void => {
    const { id } = session.header
    if (seen.has(id)) return
    seen.add(id)
    rows.push({ branch, session })
    const below = children.get(id) ?? []
    for (const [index, child] of below.entries()) {
      const isLast = index === below.length - 1
      const deeper = `${indent}${isLast ? '   ' : '│  '}`
      add(child, `${indent}${isLast ? '└─ ' : '├─ '}`, deeper.length > maxIndent ? indent : deeper)
    }
  }
  for (const session of sessions.filter(isTop)) add(session, '', '')
  // Files that name each other as parents have no top.
  for (const session of sessions) add(session, '', '')
  return rows
}

function titleOf({ header: { origin }, title }: SessionSummary): string {
  return oneLine(origin === undefined ? title : `[${origin.provider}] ${title}`)
}

function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

function tokensOf({ usage }: SessionSummary): string {
  const tokens = usage.inputTokens + usage.outputTokens
  return tokens < 1000 ? String(tokens) : `${(tokens / 1000).toFixed(1)}k`
}

function headerLines({
  id,
  createdAt,
  cwd,
  parentSession,
  seedLength,
  delegationDepth,
  origin,
}: SessionHeader): string[] {
  const lines = [`session ${id}`, `created ${timeOf(createdAt)} in ${cwd}`]
  if (parentSession !== undefined) {
    const call = origin?.callId === undefined ? '' : `, call ${origin.callId}`
    const by = origin === undefined ? '' : ` by ${origin.provider}${call}`
    lines.push(`child of ${parentSession}${by}, depth ${delegationDepth}`)
  }
  if (origin?.label !== undefined) lines.push(`task: ${origin.label}`)
  if (seedLength !== undefined)
    lines.push(`begins with the first ${seedLength} events of its parent`)
  return lines.map(oneLine)
}

function linesOf(event: SessionEvent): string[] {
  switch (event.type) {
    case 'turn/start':
      return ['', headline(`turn ${event.data.turn}, ${event.data.model}`, event.time)]
    case 'user/message':
      return ['user:', ...event.data.content.flatMap(blockLines)]
    case 'context/message':
      return [
        oneLine(`context from ${event.data.source}:`),
        ...event.data.content.flatMap(blockLines),
      ]
    case 'assistant/message':
      return ['assistant:', ...event.data.content.flatMap(blockLines), ...cutOf(event.data.finish)]
    case 'tool/result': {
      const { callId, name, content, isError, code } = event.data
      const how = isError ? ` failed${code === undefined ? '' : ` with ${code}`}` : ''
      return [oneLine(`result of ${name} (${callId})${how}:`), ...content.flatMap(blockLines)]
    }
    case 'turn/end': {
      const { reason, error } = event.data
      return [oneLine(`turn ended: ${reason}${error === undefined ? '' : `: ${error.message}`}`)]
    }
    case 'step/start':
    case 'step/end':
    case 'tool/call':
      // The message has announced the call.
      return []
  }
}

function cutOf(finish: string): string[] {
  return finish === 'stop' || finish === 'tool-calls' ? [] : [`  (cut: ${oneLine(finish)})`]
}

function blockLines(block: ContentBlock): string[] {
  switch (block.type) {
    case 'text':
      return indented(block.text)
    case 'reasoning':
      return indented(block.text).map((line) => line.replace('  ', '  ~ '))
    case 'image':
      return [oneLine(`  (image, ${block.mediaType})`)]
    case 'tool-call':
      return [oneLine(`  -> ${block.name} (${block.callId}) ${JSON.stringify(block.input)}`)]
    case 'tool-result':
      return block.content.flatMap(blockLines)
  }
}

function headline(text: string, time: number): string {
  return oneLine(`--- ${text}, ${timeOf(time)} ---`)
}

function timeOf(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, 'Z')
}

function indented(text: string): string[] {
  const lines = sanitize(text).trimEnd().split('\n')
  return lines.map((line) => `  ${line}`.trimEnd())
}

function oneLine(text: string): string {
  return sanitize(text)
    .replace(/[\n\t]+/g, ' ')
    .trimEnd()
}
