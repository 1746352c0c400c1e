/** The tools read, write, edit, glob and grep, over `ctx.fs`. */
import type { Context } from '@deepseek-ai/cordis'
import type { Tool } from '@deepseek-ai/dsh-tools'
import z from '@deepseek-ai/schemastery'
import { FsToolError } from './errors.ts'
import {
  createEditTool,
  createGlobTool,
  createGrepTool,
  createReadTool,
  createWriteTool,
  type FsToolDeps,
} from './tools.ts'

export * from './errors.ts'

export const name = 'tool-fs'
export const inject = ['tools', 'fs', 'llm']

export type FsToolName = 'read' | 'write' | 'edit' | 'glob' | 'grep'

const creators: Record<FsToolName, (deps: FsToolDeps) => Tool> = {
  read: createReadTool,
  write: createWriteTool,
  edit: createEditTool,
  glob: createGlobTool,
  grep: createGrepTool,
}

const allTools = Object.keys(creators) as FsToolName[]

export interface Config {
  /** Which tools there are, at least one; absent: all. */
  tools?: FsToolName[]
  /** Lines of one read. */
  maxLines: number
  /** Files or lines of one search. */
  maxResults: number
  /** Of one result; images apart. */
  maxBytes: number
}

export const Config: z<Partial<Config>, Config> = z.object({
  tools: z
    .array(z.union(['read', 'write', 'edit', 'glob', 'grep'] as const).required())
    .default(undefined as never),
  maxLines: z.natural().min(1).max(100_000).default(2000),
  maxResults: z.natural().min(1).max(10_000).default(200),
  maxBytes: z.natural().min(1000).max(1_000_000).default(50_000),
})

export function apply(ctx: Context, { tools = allTools, ...limits }: Config): void {
  // A key without a value arrives as null: whoever wrote it did not ask for every tool.
  if (!tools?.length) {
    throw new FsToolError('NO_TOOLS', '"tools" is empty: name at least one, or leave it out')
  }
  const deps = { fs: ctx.fs, models: ctx.llm.registry, limits }
  for (const tool of tools) ctx.tools.register(creators[tool](deps))
}
