/** What the sources really import, by package. */
import { relative } from 'node:path'
import {
  isCallExpression,
  isExportDeclaration,
  isImportDeclaration,
  isImportTypeNode,
  isLiteralTypeNode,
  isModuleDeclaration,
  isStringLiteral,
  type Node,
  type SourceFile,
} from 'typescript/unstable/ast'
import type { Project } from 'typescript/unstable/sync'
import { nodesOf } from './syntax.ts'
import { filesOf, root, type WorkspacePackage } from './workspace.ts'

export interface PackageImport {
  /** Name of the imported package, of this workspace or another's. */
  readonly name: string
  /** The importing file, relative to the root. */
  readonly file: string
}

/** The packages that files of a package import, those of Node and its own left out. */
export function importsOf(
  { program }: Project,
  item: WorkspacePackage,
  ...patterns: readonly string[]
): PackageImport[] {
  return filesOf(item.folder, ...patterns)
    .flatMap((path) => program.getSourceFile(path) ?? [])
    .flatMap((file) =>
      packagesIn(file).map((name) => ({ name, file: relative(root, file.fileName) })),
    )
    .filter(({ name }) => name !== item.name)
}

function packagesIn(file: SourceFile): string[] {
  const specifiers = [...nodesOf(file)].flatMap((node) => specifierOf(node) ?? [])
  const names = specifiers
    .filter((specifier) => !/^(\.|node:|file:|\/)/.test(specifier))
    .map((specifier) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier)
  return [...new Set(names)]
}

function specifierOf(node: Node): string | undefined {
  if (isImportDeclaration(node) || isExportDeclaration(node)) return textOf(node.moduleSpecifier)
  if (isModuleDeclaration(node)) return textOf(node.name)
  if (isImportTypeNode(node) && isLiteralTypeNode(node.argument)) {
    return textOf(node.argument.literal)
  }
  if (isCallExpression(node) && /^(import|require)$/.test(node.expression.getText())) {
    return textOf(node.arguments[0])
  }
  return undefined
}

function textOf(node: Node | undefined): string | undefined {
  return node !== undefined && isStringLiteral(node) ? node.text : undefined
}
