/** The services that packages add to the cordis context. */
import {
  isIdentifier,
  isPropertySignatureDeclaration,
  isTypeReferenceNode,
} from 'typescript/unstable/ast'
import { type Project, SymbolFlags } from 'typescript/unstable/sync'
import { mergedIntoCordis, sourcesOf } from '../syntax.ts'
import type { WorkspacePackage } from '../workspace.ts'

export interface ServiceFact {
  /** As in `ctx.subagents`. */
  readonly key: string
  readonly type: string
  readonly doc: string
}

/** The keys of the context that a package declares. */
export function servicesOf(project: Project, item: WorkspacePackage): ServiceFact[] {
  const { checker } = project
  return sourcesOf(project, item)
    .flatMap((file) => mergedIntoCordis(file, 'Context'))
    .flatMap(({ members }) => [...members])
    .filter(isPropertySignatureDeclaration)
    .map(({ name, type }) => {
      const reference = type !== undefined && isTypeReferenceNode(type) ? type.typeName : undefined
      const symbol = reference && isIdentifier(reference) && checker.getSymbolAtLocation(reference)
      const declared =
        symbol && (symbol.flags & SymbolFlags.Alias) !== 0
          ? checker.getAliasedSymbol(symbol)
          : symbol
      return {
        key: name.getText(),
        type: type?.getText() ?? 'unknown',
        doc: declared ? declared.getDocumentationComment(checker).replaceAll(/\s+/g, ' ') : '',
      }
    })
}
