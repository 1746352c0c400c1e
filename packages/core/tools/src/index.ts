/** The tool seam: what a model may call, reached through `ctx.tools`. */
import { type Context, Service } from '@deepseek-ai/cordis'
import { createNotify, type ToolSchema } from '@deepseek-ai/dsh-llm'
import type { z } from 'zod'
import { executeCall, type ExecuteOptions } from './execute.ts'
import { ToolTable } from './table.ts'
import type { Tool, ToolAgent, ToolCall, ToolProgress, ToolResult } from './types.ts'

export * from './errors.ts'
export * from './execute.ts'
export * from './results.ts'
export * from './table.ts'
export * from './types.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    tools: ToolService
  }

  interface Events {
    /**
     * Wraps every call that is about to run: a listener may refuse it by returning a result
     * without `next()`, change `call.input` before `next()`, or change what `next()` gives.
     * @mode waterfall
     */
    'tools/execute'(call: ToolCall, next: () => Promise<ToolResult>): Promise<ToolResult>
    /** A running call told of its progress. Contained. */
    'tools/progress'(payload: { readonly call: ToolCall; readonly progress: ToolProgress }): void
  }
}

/** Registry of {@link Tool}s. */
export class ToolService extends Service {
  /** The plain registry, for hot paths: each read through `ctx.tools` passes a proxy. */
  readonly table = new ToolTable()
  /** Runs a call; bound, for hot paths. */
  readonly run: (call: ToolCall) => Promise<ToolResult>

  constructor(ctx: Context) {
    super(ctx, 'tools')
    const { root } = ctx
    const hooks = root.events._hooks
    const notify = createNotify(ctx)
    const options: ExecuteOptions = {
      table: this.table,
      wrap: (call, inner) =>
        // The bus costs microseconds even when nobody listens.
        hooks['tools/execute']?.length ? root.waterfall('tools/execute', call, inner) : inner(),
      update: (call, progress) => notify('tools/progress', { call, progress }),
    }
    this.run = (call) => executeCall(call, options)
  }

  /**
   * Adds a tool until the calling plugin is disposed.
   * @returns a disposer that removes it early; calling it twice is harmless.
   * @throws ToolError `INVALID_TOOL`, `DUPLICATE_TOOL`.
   */
  register<Parameters extends z.ZodObject>(tool: Tool<Parameters>): () => Promise<void> {
    const { table } = this
    return this.ctx.effect(() => {
      table.add(tool)
      return () => table.remove(tool)
    }, `tools.register(${tool.name})`)
  }

  /** The tools that the agent may use. */
  visible(agent: ToolAgent): Tool[] {
    return this.table.visible(agent)
  }

  /** What the agent's model is told of its tools. */
  schemas(agent: ToolAgent): readonly ToolSchema[] {
    return this.table.schemas(agent)
  }

  /** Runs a call. Never rejects: a failure is a result with `isError` and a code. */
  execute(call: ToolCall): Promise<ToolResult> {
    return this.run(call)
  }
}

export default ToolService
