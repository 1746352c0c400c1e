/** The tools of a context, as a plain object that hot paths may hold. */
import { type JsonObject, messageOf, type ToolSchema } from '@deepseek-ai/dsh-llm'
import { freezeJson } from '@deepseek-ai/dsh-session'
import { z } from 'zod'
import { ToolError } from './errors.ts'
import type { Tool, ToolAgent, ToolScope } from './types.ts'

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/
const everything: ToolScope = { allows: () => true }

/** How a name stands for an agent. */
export type ToolLookup =
  | { readonly kind: 'found'; readonly tool: Tool }
  | { readonly kind: 'denied' }
  | { readonly kind: 'unknown' }

/** Registered tools by name; one lookup decides both what a model sees and what it may run. */
export class ToolTable {
  private readonly tools = new Map<string, Tool>()
  /** Replaced whenever the tools change. */
  private cache = new WeakMap<ToolScope, readonly ToolSchema[]>()
  private readonly schemaOfTool = new WeakMap<Tool, ToolSchema>()

  /** @throws ToolError `INVALID_TOOL`, `DUPLICATE_TOOL`; nothing is added then. */
  add(tool: Tool): void {
    const { name } = tool
    if (!namePattern.test(name)) {
      throw new ToolError('INVALID_TOOL', `tool name "${name}" must match ${namePattern}`)
    }
    if (this.tools.has(name)) {
      throw new ToolError('DUPLICATE_TOOL', `tool "${name}" is already registered`)
    }
    this.schemaOf(tool)
    this.tools.set(name, tool)
    this.cache = new WeakMap()
  }

  remove(tool: Tool): void {
    this.tools.delete(tool.name)
    this.cache = new WeakMap()
  }

  has(name: string): boolean {
    return this.tools.has(name)
  }

  names(): string[] {
    return [...this.tools.keys()]
  }

  lookup(agent: ToolAgent, name: string): ToolLookup {
    const scope = agent.toolScope ?? everything
    const own = scope.own?.find((tool) => tool.name === name)
    if (own !== undefined) return { kind: 'found', tool: own }
    const tool = this.tools.get(name)
    if (tool === undefined) return { kind: 'unknown' }
    return scope.allows(name) ? { kind: 'found', tool } : { kind: 'denied' }
  }

  /** The tools that the agent may use: its own ones last, hiding registered ones of their name. */
  visible(agent: ToolAgent): Tool[] {
    const scope = agent.toolScope ?? everything
    const own = scope.own ?? []
    const hidden = new Set(own.map(({ name }) => name))
    const registered = [...this.tools.values()].filter(
      ({ name }) => !hidden.has(name) && scope.allows(name),
    )
    return [...registered, ...own]
  }

  /** What the model is told; the same array until the tools change, sorted so that load order never shows. */
  schemas(agent: ToolAgent): readonly ToolSchema[] {
    const scope = agent.toolScope ?? everything
    const cached = this.cache.get(scope)
    if (cached !== undefined) return cached
    const schemas = this.visible(agent)
      .map((tool) => this.schemaOf(tool))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    this.cache.set(scope, schemas)
    return schemas
  }

  private schemaOf(tool: Tool): ToolSchema {
    const known = this.schemaOfTool.get(tool)
    if (known !== undefined) return known
    const { name, description } = tool
    const parameters = parametersOf(tool)
    const schema = freezeJson<ToolSchema>({ name, description, parameters })
    this.schemaOfTool.set(tool, schema)
    return schema
  }
}

/** @throws ToolError `INVALID_TOOL`. */
function parametersOf({ name, inputSchema, parameters }: Tool): JsonObject {
  try {
    if (inputSchema !== undefined) return freezeJson(inputSchema)
    const { $schema: _, ...schema } = z.toJSONSchema(parameters, { io: 'input' })
    return freezeJson(schema as JsonObject)
  } catch (error) {
    const why = messageOf(error)
    throw new ToolError('INVALID_TOOL', `tool "${name}" has no JSON Schema: ${why}`, {
      cause: error,
    })
  }
}
