/** The config of a plugin: its real schema, and what the docstrings say of the keys. */
import { pathToFileURL } from 'node:url'
import {
  isClassDeclaration,
  isPropertyDeclaration,
  isTypeReferenceNode,
  isVariableDeclaration,
  type Node,
  type TypeNode,
} from 'typescript/unstable/ast'
import { type Project, type Type, SymbolFlags } from 'typescript/unstable/sync'
import { declarationOf, exportsOf, nodesOf } from '../syntax.ts'
import { entryOf, type WorkspacePackage } from '../workspace.ts'

/** The part of a Schemastery schema that is read here. */
export interface Schema {
  (value: unknown): unknown
  readonly type?: string
  readonly dict?: Readonly<Record<string, Schema>>
  readonly inner?: Schema
  readonly meta?: {
    readonly default?: unknown
    readonly required?: boolean
    readonly min?: number
    readonly max?: number
    readonly step?: number
    readonly role?: string
    readonly pattern?: { readonly source: string }
  }
  toString(): string
}

/** What the Loader makes of a module. */
export interface Plugin {
  /** Absent when the plugin takes no config. */
  readonly schema: Schema | undefined
}

export interface ConfigKey {
  /** From the config's root, for example `toolFilter.deny`. */
  readonly path: string
  readonly type: string
  /** What a value must be beyond its type, in words; empty when nothing. */
  readonly limits: string
  /** As it would be written in a yml; absent when the key has none. */
  readonly defaultValue: string | undefined
  readonly isRequired: boolean
  readonly doc: string
}

/** Imports a package as the Loader does; absent when it exports no plugin. */
export async function pluginOf(item: WorkspacePackage): Promise<Plugin | undefined> {
  const path = pathToFileURL(entryOf(item)).href
  const exported = (await import(path)) as Record<string, unknown>
  const { default: service, apply } = exported
  if (typeof service === 'function') {
    return { schema: (service as { Config?: Schema }).Config }
  }
  if (typeof apply !== 'function') return undefined
  return { schema: exported['Config'] as Schema | undefined }
}

/** The keys of a plugin's config, with the docstrings of the type that its schema gives. */
export function configKeysOf(
  project: Project,
  item: WorkspacePackage,
  schema: Schema,
): ConfigKey[] {
  const type = configTypeOf(project, item)
  return Object.entries(schema.dict ?? {}).flatMap(([key, value]) =>
    keysBelow(project, key, value, type, key),
  )
}

function keysBelow(
  project: Project,
  path: string,
  schema: Schema,
  owner: Type | undefined,
  name: string,
): ConfigKey[] {
  const { checker } = project
  const symbol = owner && checker.getPropertyOfType(owner, name)
  const { default: value, required: isRequired = false } = schema.meta ?? {}
  const key: ConfigKey = {
    path,
    type: typeText(schema),
    limits: limitsText(schema),
    defaultValue: isRequired || value === undefined ? undefined : JSON.stringify(value),
    isRequired,
    doc: symbol?.getDocumentationComment(checker).replaceAll(/\s+/g, ' ').trim() ?? '',
  }
  if (schema.type !== 'object') return [key]
  const declared = symbol && checker.getTypeOfSymbol(symbol)
  const inner = declared && checker.getNonNullableType(declared)
  return [
    key,
    ...Object.entries(schema.dict ?? {}).flatMap(([child, item]) =>
      keysBelow(project, `${path}.${child}`, item, inner, child),
    ),
  ]
}

function typeText(schema: Schema): string {
  if (schema.type === 'object') return 'object'
  return (schema.meta?.step === 1 ? 'integer' : schema.toString()).replaceAll('\n', ' ')
}

/** What a value must be beyond its type, in words; empty when nothing. */
function limitsText({ type, meta = {} }: Schema): string {
  const { min, max = Infinity, role, pattern } = meta
  if (role === 'secret') return 'secret'
  if (pattern !== undefined) return `as \`${pattern.source}\``
  if (type === 'string') return min === 1 ? 'not empty' : ''
  if (min === undefined) return ''
  return max >= Number.MAX_SAFE_INTEGER ? `at least ${told(min)}` : `${told(min)} to ${told(max)}`
}

const told = (value: number): string => value.toLocaleString('en')

/** The last argument of the `z<Input, Output>` that annotates the schema. */
function configTypeOf(project: Project, item: WorkspacePackage): Type | undefined {
  const annotation = annotationOf(project, item)
  if (annotation === undefined || !isTypeReferenceNode(annotation)) return undefined
  const output = annotation.typeArguments?.at(-1)
  return output && project.checker.getTypeFromTypeNode(output)
}

function annotationOf(project: Project, item: WorkspacePackage): TypeNode | undefined {
  for (const [name, symbol] of exportsOf(project, entryOf(item))) {
    const declaration =
      name === 'Config'
        ? symbol.declarations.map((handle) => handle.resolve(project)).find(isVariable)
        : (symbol.flags & SymbolFlags.Class) === 0
          ? undefined
          : configMemberOf(declarationOf(project, symbol))
    if (declaration?.type !== undefined) return declaration.type
  }
  return undefined
}

const isVariable = (node: Node | undefined): node is Node & { readonly type?: TypeNode } =>
  node !== undefined && isVariableDeclaration(node)

function configMemberOf(node: Node | undefined): { readonly type?: TypeNode } | undefined {
  if (node === undefined || !isClassDeclaration(node)) return undefined
  return [...nodesOf(node)]
    .filter(isPropertyDeclaration)
    .find((member) => member.name.getText() === 'Config')
}
