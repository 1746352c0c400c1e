/** The runs below one agent: what is told of them while they run, and what is reported in the end. */
import type { Context } from '@deepseek-ai/cordis'
import { addUsage, noUsage, type Usage } from '@deepseek-ai/dsh-llm'
import type { SessionId } from '@deepseek-ai/dsh-session'
import type {
  SubagentRunEnd,
  SubagentRunId,
  SubagentRunInfo,
  SubagentStopReason,
  SubagentUpdate,
} from '@deepseek-ai/dsh-subagent'

/** One child as `--output json` tells it; `usage` includes its children. */
export interface ChildReport {
  readonly sessionId: SessionId
  readonly parent: SessionId
  readonly provider: string
  readonly label?: string
  readonly stopReason: SubagentStopReason
  readonly usage?: Usage
  readonly children: readonly ChildReport[]
}

/** A run as far as it is known. */
export interface Member {
  readonly info: SubagentRunInfo
  /** 1 for a child of the agent at the top. */
  readonly depth: number
  /** As of `performance.now()`. */
  readonly startedAt: number
  /** What the child does at the moment, for people. */
  doing: string
  tokens: number
}

/** What is kept of a run when it has ended: no agent, and no text. */
interface RunRecord {
  readonly parent: SessionId
  readonly info: Pick<SubagentRunInfo, 'id' | 'provider' | 'label'>
  end?: Pick<SubagentRunEnd, 'stopReason' | 'usage'>
}

/** Keeps the tree of runs whose root is one agent; runs of other agents are passed over. */
export class Family {
  private readonly rootId: SessionId
  private readonly live = new Map<SubagentRunId, Member>()
  private readonly depths = new Map<SessionId, number>()
  /** By run; absent when nobody will ask for a report. */
  private readonly records: Map<SubagentRunId, RunRecord> | undefined

  constructor(rootId: SessionId, options: { readonly isReported?: boolean } = {}) {
    this.rootId = rootId
    this.depths.set(rootId, 0)
    this.records = options.isReported === true ? new Map() : undefined
  }

  /** @returns the new member; absent when the run belongs to somebody else. */
  start(info: SubagentRunInfo): Member | undefined {
    const depth = this.depths.get(info.parent.id)
    if (depth === undefined) return undefined
    const startedAt = performance.now()
    const member: Member = { info, depth: depth + 1, startedAt, doing: 'starting', tokens: 0 }
    const { id, provider, label, parent } = info
    this.depths.set(id, depth + 1)
    this.live.set(info.runId, member)
    this.records?.set(info.runId, { parent: parent.id, info: { id, provider, label } })
    return member
  }

  update(update: SubagentUpdate): void {
    const member = this.live.get(update.runId)
    if (member === undefined) return
    switch (update.kind) {
      case 'tool-start':
        member.doing = [update.name, update.title].filter(Boolean).join(' ')
        break
      case 'tool-end':
      case 'reasoning':
        member.doing = 'thinking'
        break
      case 'text':
        member.doing = 'writing'
        break
      case 'plan':
        break
      case 'usage':
        member.tokens = tokensOf(update.usage)
        break
    }
  }

  /** @returns the member that ended; absent when the run belongs to somebody else. */
  end(end: SubagentRunEnd): Member | undefined {
    const member = this.live.get(end.runId)
    if (member === undefined) return undefined
    this.live.delete(end.runId)
    this.depths.delete(end.id)
    const record = this.records?.get(end.runId)
    if (record !== undefined) record.end = { stopReason: end.stopReason, usage: end.usage }
    if (end.usage !== undefined) member.tokens = tokensOf(end.usage)
    return member
  }

  /** Those that run, oldest first. */
  running(): Member[] {
    return [...this.live.values()]
  }

  /** The children of a session with all that is below them, in the order of their starts. */
  report(parent: SessionId = this.rootId): ChildReport[] {
    return [...(this.records?.values() ?? [])]
      .filter((record) => record.parent === parent)
      .map(({ info: { id, provider, label }, end }) => ({
        sessionId: id,
        parent,
        provider,
        ...(label !== undefined && { label }),
        stopReason: end?.stopReason ?? 'aborted',
        ...(end?.usage !== undefined && { usage: end.usage }),
        children: this.report(id),
      }))
  }

  /** Tokens of all members; each run's own figure includes those below it. */
  usage(): Usage {
    return this.report().reduce((sum, { usage = noUsage }) => addUsage(sum, usage), noUsage)
  }
}

/** What to do when a member comes and goes. */
export interface FamilyListener {
  readonly started?: (member: Member) => void
  readonly ended?: (member: Member, end: SubagentRunEnd) => void
}

/** Keeps the family up to date until the returned function is called. */
export function followFamily(
  ctx: Context,
  family: Family,
  { started, ended }: FamilyListener = {},
): () => void {
  const undo = [
    ctx.on('subagent/start', (info) => {
      const member = family.start(info)
      if (member !== undefined) started?.(member)
    }),
    ctx.on('subagent/update', (update) => family.update(update)),
    ctx.on('subagent/end', (end) => {
      const member = family.end(end)
      if (member !== undefined) ended?.(member, end)
    }),
  ]
  return () => {
    for (const off of undo) off()
  }
}

function tokensOf({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens
}
