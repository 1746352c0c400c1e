/** The events that packages merge into cordis, and who emits them. */
import {
  isCallExpression,
  isElementAccessExpression,
  isMethodSignatureDeclaration,
  isStringLiteral,
  type StringLiteral,
} from 'typescript/unstable/ast'
import type { Project } from 'typescript/unstable/sync'
import { docOf, mergedIntoCordis, nodesOf, sourcesOf } from '../syntax.ts'
import type { WorkspacePackage } from '../workspace.ts'

export interface BusEvent {
  readonly name: string
  /** The parameters of a listener, and what it returns when that matters, as they are declared. */
  readonly signature: string
  readonly doc: string
}

/** The events that a package declares, in the order of its source. */
export function eventsOf(project: Project, item: WorkspacePackage): BusEvent[] {
  return sourcesOf(project, item)
    .flatMap((file) => mergedIntoCordis(file, 'Events'))
    .flatMap(({ members }) => [...members])
    .filter(isMethodSignatureDeclaration)
    .map((member) => {
      const { name, parameters, type } = member
      const returned = type?.getText() ?? 'void'
      const list = parameters.map((parameter) => parameter.getText()).join(', ')
      const signature = `(${list})${returned === 'void' ? '' : `: ${returned}`}`
      return {
        name: isStringLiteral(name) ? name.text : name.getText(),
        signature: onOneLine(signature),
        doc: docOf(member),
      }
    })
}

function onOneLine(source: string): string {
  return source
    .replaceAll(/\{\s*\n\s*/g, '{ ')
    .replaceAll(/\s*\n\s*\}/g, ' }')
    .replaceAll(/\s*\n\s*/g, '; ')
}

/** What becomes of a listener's throw. */
export type Containment = 'contained' | 'reaches the emitter' | 'waterfall'

export interface Emission {
  /** Name of the package. */
  readonly by: string
  readonly containment: Containment
}

/** Every place that emits an event, by the event's name. */
export function emissionsOf(
  project: Project,
  packages: readonly WorkspacePackage[],
): Map<string, Emission[]> {
  const emissions = new Map<string, Emission[]>()
  for (const item of packages) {
    for (const literal of sourcesOf(project, item).flatMap((file) => [...nodesOf(file)])) {
      const containment = isStringLiteral(literal) ? containmentAt(literal) : undefined
      if (containment === undefined) continue
      const { text } = literal as StringLiteral
      emissions.set(text, [...(emissions.get(text) ?? []), { by: item.name, containment }])
    }
  }
  return emissions
}

/** Absent when the text is no event that is emitted there. */
function containmentAt(literal: StringLiteral): Containment | undefined {
  const { parent } = literal
  // A package that calls listeners itself, one by one, reads them by the event's name.
  if (isElementAccessExpression(parent) && parent.argumentExpression === literal) {
    return parent.expression.getText().endsWith('hooks') ? 'reaches the emitter' : undefined
  }
  if (!isCallExpression(parent) || parent.arguments[0] !== literal) return undefined
  const callee = parent.expression.getText()
  if (/(^|\.)notify$/.test(callee)) return 'contained'
  if (callee.endsWith('.waterfall')) return 'waterfall'
  return /(^|\.)(emit|parallel|serial|bail)$/.test(callee) ? 'reaches the emitter' : undefined
}
