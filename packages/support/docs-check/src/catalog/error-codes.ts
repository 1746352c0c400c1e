/** The codes of typed errors, and what their messages say. */
import {
  isClassDeclaration,
  isLiteralTypeNode,
  isNewExpression,
  isNoSubstitutionTemplateLiteral,
  isStringLiteral,
  isTemplateExpression,
  isTypeAliasDeclaration,
  isUnionTypeNode,
  type Node,
  type TypeAliasDeclaration,
  type TypeNode,
} from 'typescript/unstable/ast'
import type { Project } from 'typescript/unstable/sync'
import { docIn, docOf, nodesOf, sourcesOf } from '../syntax.ts'
import type { WorkspacePackage } from '../workspace.ts'

export interface ErrorCode {
  /** The class that carries it. */
  readonly error: string
  readonly code: string
  /** From the docstring of the union's member; empty when it has none. */
  readonly doc: string
  /** What the messages say, with an ellipsis for each value, in the order of the source. */
  readonly messages: readonly string[]
}

/** The codes of the error unions that a package declares. */
export function errorCodesOf(
  project: Project,
  item: WorkspacePackage,
  messages: ReadonlyMap<string, readonly string[]>,
): ErrorCode[] {
  const nodes = sourcesOf(project, item).flatMap((file) => [...nodesOf(file)])
  const aliases = nodes.filter(isTypeAliasDeclaration).filter(isErrorUnion)
  const classes = nodes.filter(isClassDeclaration)
  return aliases.flatMap((alias) => {
    const union = alias.name.text
    const declaration = classes.find((candidate) => candidate.getText().includes(`<${union}>`))
    const error = declaration?.name?.text ?? union
    return membersOf(alias).map(({ code, doc }) => ({
      error,
      code,
      doc,
      messages: [...new Set(messages.get(`${error} ${code}`))],
    }))
  })
}

/** What `new SomeError('CODE', message)` says anywhere, by class and code with a space between. */
export function errorMessagesOf(
  project: Project,
  packages: readonly WorkspacePackage[],
): Map<string, string[]> {
  const messages = new Map<string, string[]>()
  const nodes = packages
    .flatMap((item) => sourcesOf(project, item))
    .flatMap((file) => [...nodesOf(file)])
  for (const node of nodes.filter(isNewExpression)) {
    const [code, message] = node.arguments ?? []
    const text = message === undefined ? undefined : templateOf(message)
    if (code === undefined || !isStringLiteral(code) || text === undefined) continue
    const key = `${node.expression.getText()} ${code.text}`
    messages.set(key, [...(messages.get(key) ?? []), text])
  }
  return messages
}

const isErrorUnion = ({ name }: TypeAliasDeclaration): boolean => name.text.endsWith('ErrorCode')

function membersOf({ type }: TypeAliasDeclaration): { code: string; doc: string }[] {
  const types: readonly TypeNode[] = isUnionTypeNode(type) ? [...type.types] : [type]
  const { text } = type.getSourceFile()
  const own = docOf(type.parent)
  return types.flatMap((member, index) => {
    if (!isLiteralTypeNode(member) || !isStringLiteral(member.literal)) return []
    const from = types[index - 1]?.getEnd() ?? type.getFullStart()
    const doc = docIn(text.slice(from, member.getStart()))
    return [{ code: member.literal.text, doc: types.length === 1 ? own : doc }]
  })
}

/** A text with an ellipsis for each value; absent when it is only known at run time. */
function templateOf(node: Node): string | undefined {
  if (isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node)) return node.text
  if (!isTemplateExpression(node)) return undefined
  const spans = node.templateSpans.map((span) => `…${span.literal.text}`)
  return node.head.text + spans.join('')
}
