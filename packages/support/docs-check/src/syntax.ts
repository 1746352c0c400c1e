/** What the sources say of themselves: exports, docstrings, augmentations. */
import {
  type InterfaceDeclaration,
  isInterfaceDeclaration,
  isModuleDeclaration,
  type Node,
  type SourceFile,
} from 'typescript/unstable/ast'
import { type Project, type Symbol as TypeSymbol, SymbolFlags } from 'typescript/unstable/sync'
import { filesOf, type WorkspacePackage } from './workspace.ts'

const typeFlags = SymbolFlags.Interface | SymbolFlags.TypeAlias | SymbolFlags.Class

/** The named exports of a module, each resolved to what it stands for. */
export function exportsOf({ program, checker }: Project, path: string): Map<string, TypeSymbol> {
  const file = program.getSourceFile(path)
  const symbol = file === undefined ? undefined : checker.getSymbolAtLocation(file)
  if (symbol === undefined) throw new Error(`"${path}" is no module of the program`)
  const named = checker.getExportsOfModule(symbol).filter(({ name }) => name !== 'default')
  return new Map(
    named.map((item) => [
      item.name,
      (item.flags & SymbolFlags.Alias) === 0 ? item : checker.getAliasedSymbol(item),
    ]),
  )
}

/** Whether an export is an interface, a type or a class. */
export const isType = ({ flags }: TypeSymbol): boolean => (flags & typeFlags) !== 0

/** Whether an export is there at run time; a class is this and a type. */
export const isValue = ({ flags }: TypeSymbol): boolean => (flags & SymbolFlags.Value) !== 0

/** The declaration that an export stands for. */
export function declarationOf(project: Project, symbol: TypeSymbol): Node | undefined {
  return symbol.declarations[0]?.resolve(project)
}

/** The source files of a package, in the order of their paths. */
export function sourcesOf({ program }: Project, { folder }: WorkspacePackage): SourceFile[] {
  return filesOf(folder, 'src/**/*.ts').flatMap((path) => program.getSourceFile(path) ?? [])
}

/** The interfaces of this name that a file merges into cordis. */
export function mergedIntoCordis(file: SourceFile, name: string): InterfaceDeclaration[] {
  return file.statements.flatMap((statement) => {
    if (!isModuleDeclaration(statement) || statement.name.getText() !== "'@deepseek-ai/cordis'") {
      return []
    }
    return childrenOf(statement.body)
      .filter(isInterfaceDeclaration)
      .filter((declaration) => declaration.name.text === name)
  })
}

/** The text of the docstring before a node, on one line; empty when there is none. */
export function docOf(node: Node): string {
  const file = node.getSourceFile()
  const before = file.text.slice(node.getFullStart(), node.getStart(file))
  return docIn(before)
}

/** The text of the last docstring in a piece of source, on one line; empty when there is none. */
export function docIn(source: string): string {
  const comment = source.match(/\/\*\*[^]*?\*\//g)?.at(-1) ?? ''
  return comment
    .replace(/^\/\*\*|\*\/$/g, '')
    .replaceAll(/^\s*\*/gm, '')
    .replaceAll(/\{@link (\S+?)\}/g, '`$1`')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** All nodes below a node, in the order of the text. */
export function* nodesOf(node: Node): Generator<Node, void, void> {
  for (const child of childrenOf(node)) {
    yield child
    yield* nodesOf(child)
  }
}

function childrenOf(node: Node | undefined): Node[] {
  const children: Node[] = []
  node?.forEachChild((child) => {
    children.push(child)
    return undefined
  })
  return children
}
