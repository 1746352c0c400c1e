/** A subagent provider whose children do what a test tells them. */
import type { JsonValue, Usage } from '@deepseek-ai/dsh-llm'
import type {
  SubagentCapabilities,
  SubagentProvider,
  SubagentResult,
  SubagentRun,
  SubagentRunContext,
  SubagentStartRequest,
  SubagentStopReason,
} from '@deepseek-ai/dsh-subagent'

/** A child, as its script sees it. */
export interface MockChild {
  readonly request: SubagentStartRequest
  readonly context: SubagentRunContext
  /** Counts the children of the provider from 0. */
  readonly index: number
  /** Aborted when the run is cancelled or disposed. */
  readonly signal: AbortSignal
  /** Streams text; what was streamed is the output when the script gives no text. */
  readonly say: (text: string) => void
}

/** How a child ends. */
export interface MockReply {
  readonly text?: string
  /** Default: `completed`. */
  readonly stopReason?: SubagentStopReason
  readonly diagnostic?: string
  readonly structured?: JsonValue
  readonly usage?: Usage
}

/** What a child does; a text stands for `{ text }`, a throw makes the run's `result` reject. */
export type MockScript = (child: MockChild) => string | MockReply | Promise<string | MockReply>

export interface MockOptions {
  /** Default: `mock`. */
  readonly name?: string
  /** Default: none. */
  readonly capabilities?: Partial<SubagentCapabilities>
  /** Default: false. */
  readonly inheritsParentContext?: boolean
  /** Default: each child answers `done`. */
  readonly script?: MockScript
  /** Thrown by each start, before there is a child. */
  readonly startError?: Error
  /** Tells children that do not hear a cancel: only their script or `dispose()` ends them. */
  readonly isDeaf?: (request: SubagentStartRequest) => boolean
}

export interface MockProvider extends SubagentProvider {
  /** Every request that reached the provider, in order. */
  readonly requests: readonly SubagentStartRequest[]
  /** Ids of the children that neither ended by themselves nor were disposed. */
  readonly alive: ReadonlySet<string>
  /** Ids of the children whose runs were disposed, in order. */
  readonly disposed: readonly string[]
}

/** Makes a provider that also records what it was asked. */
export function createMockProvider(options: MockOptions = {}): MockProvider {
  const requests: SubagentStartRequest[] = []
  const alive = new Set<string>()
  const disposed: string[] = []
  return {
    name: options.name ?? 'mock',
    capabilities: {
      outputSchema: false,
      depthLimit: false,
      toolFilter: false,
      ...options.capabilities,
    },
    inheritsParentContext: options.inheritsParentContext ?? false,
    requests,
    alive,
    disposed,
    start: (request, context) => {
      const index = requests.push(request) - 1
      if (options.startError !== undefined) throw options.startError
      return new MockRun({ request, context, index, options, alive, disposed })
    },
  }
}

interface MockRunSpec extends Pick<MockChild, 'request' | 'context' | 'index'> {
  readonly options: MockOptions
  readonly alive: Set<string>
  readonly disposed: string[]
}

class MockRun implements SubagentRun {
  readonly id: SubagentRun['id']
  readonly result: Promise<SubagentResult>
  private readonly spec: MockRunSpec
  private readonly ending = Promise.withResolvers<SubagentResult>()
  private readonly stopping = new AbortController()
  private streamed = ''
  private disposal: Promise<void> | undefined

  constructor(spec: MockRunSpec) {
    this.spec = spec
    this.id = spec.context.childId
    this.result = this.ending.promise
    spec.alive.add(this.id)
    void this.perform().then(this.ending.resolve, this.ending.reject)
  }

  cancel(reason?: string): void {
    const { options, request } = this.spec
    if (options.isDeaf?.(request) !== true) this.end(reason)
  }

  dispose(): Promise<void> {
    this.disposal ??= this.disposeOnce()
    return this.disposal
  }

  private async disposeOnce(): Promise<void> {
    this.end()
    this.spec.disposed.push(this.id)
  }

  private end(diagnostic?: string): void {
    this.stopping.abort()
    this.spec.alive.delete(this.id)
    this.ending.resolve(this.resultOf({ stopReason: 'aborted', diagnostic }))
  }

  private async perform(): Promise<SubagentResult> {
    const { options, request, context, index, alive } = this.spec
    const { script = () => 'done' } = options
    const { signal } = this.stopping
    const say = (text: string): void => {
      if (signal.aborted) return
      this.streamed += text
      context.report({ kind: 'text', text })
    }
    try {
      const reply = await script({ request, context, index, signal, say })
      return this.resultOf(typeof reply === 'string' ? { text: reply } : reply)
    } finally {
      alive.delete(this.id)
    }
  }

  private resultOf({ text, stopReason, diagnostic, structured, usage }: MockReply): SubagentResult {
    const said = text ?? this.streamed
    return {
      output: said === '' ? [] : [{ type: 'text', text: said }],
      stopReason: stopReason ?? 'completed',
      ...(diagnostic !== undefined && { diagnostic }),
      ...(structured !== undefined && { structured }),
      ...(usage !== undefined && { usage }),
    }
  }
}
