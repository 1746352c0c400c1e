/** Draws which package depends on which. */
import { floors } from './floor-plan.ts'
import { layOut, type Point } from './layout.ts'
import type { WorkspacePackage } from '../workspace.ts'

const colours: Readonly<Record<string, string>> = {
  core: '#dbeafe',
  llm: '#fef3c7',
  session: '#fde2e4',
  subagent: '#dcfce7',
  support: '#f1f5f9',
  workspace: '#ede9fe',
  acp: '#ffedd5',
  app: '#ffedd5',
}
const margin = 28
const boxHeight = 34
const characterWidth = 7.6

const widthOf = (name: string): number => Math.round(name.length * characterWidth) + 24

/** The dependencies of the published packages, without those that others imply. */
export function reducedEdges(packages: readonly WorkspacePackage[]): [string, string][] {
  const published = packages.filter(({ manifest }) => manifest.private !== true)
  const shortNames = new Map(published.map(({ name, shortName }) => [name, shortName]))
  const targets = new Map(
    published.map(({ shortName, manifest }) => [
      shortName,
      Object.keys(manifest.dependencies ?? {}).flatMap((name) => shortNames.get(name) ?? []),
    ]),
  )
  const reaches = (from: string, to: string): boolean =>
    (targets.get(from) ?? []).some((next) => next === to || reaches(next, to))
  return [...targets].flatMap(([from, direct]) =>
    direct
      .filter((to) => !direct.some((other) => other !== to && reaches(other, to)))
      .map((to): [string, string] => [from, to]),
  )
}

/**
 * The drawing, as SVG; the same packages always give the same text.
 * @throws Error when a published package has no floor.
 */
export function renderModuleGraph(packages: readonly WorkspacePackage[]): string {
  const groups = new Map(packages.map(({ shortName, group }) => [shortName, group]))
  const edges = reducedEdges(packages)
  const homeless = edges.flat().find((name) => !floors.flat().includes(name))
  if (homeless !== undefined) {
    throw new Error(`package "${homeless}" has no floor: give it one in graph/floor-plan.ts`)
  }
  const layout = layOut({ layers: floors.toReversed(), edges, widthOf })
  const [width, height] = [layout.width + 2 * margin, layout.height + 2 * margin + boxHeight + 40]
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12.5">`,
    `<title>The packages of dsh and what each depends on; arrows that others imply are left out</title>`,
    `<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#64748b"/></marker></defs>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<g transform="translate(${margin} ${margin + boxHeight / 2})">`,
    ...layout.edges.map(
      (points) =>
        `<path d="${pathOf(points)}" fill="none" stroke="#94a3b8" stroke-width="1.2" marker-end="url(#tip)"/>`,
    ),
    ...Array.from(layout.nodes, ([name, point]) =>
      boxOf(name, point, groups.get(name), widthOf(name)),
    ),
    `</g>`,
    ...legendOf(height - 24),
    `</svg>`,
    '',
  ].join('\n')
}

function boxOf(name: string, { x, y }: Point, group = '', width: number): string {
  const [left, top] = [x - width / 2, y - boxHeight / 2]
  return [
    `<rect x="${left}" y="${top}" width="${width}" height="${boxHeight}" rx="6" fill="${colours[group] ?? '#ffffff'}" stroke="#475569"/>`,
    `<text x="${x}" y="${y + 4}" text-anchor="middle" fill="#0f172a">${name}</text>`,
  ].join('')
}

/** A curve that leaves and enters every point upright. */
function pathOf(points: readonly Point[]): string {
  const last = points.length - 1
  const ends = points.map(({ x, y }, index) => ({
    x,
    y: index === 0 ? y + boxHeight / 2 : index === last ? y - boxHeight / 2 - 1 : y,
  }))
  return ends
    .map(({ x, y }, index) => {
      const before = ends[index - 1]
      if (before === undefined) return `M${x} ${y}`
      const bend = (y - before.y) / 2
      return `C${before.x} ${before.y + bend} ${x} ${y - bend} ${x} ${y}`
    })
    .join(' ')
}

function legendOf(y: number): string[] {
  return Object.entries(colours).map(([group, colour], index) => {
    const x = margin + index * 118
    return `<rect x="${x}" y="${y - 11}" width="14" height="14" rx="3" fill="${colour}" stroke="#475569"/><text x="${x + 20}" y="${y}" fill="#334155">${group}</text>`
  })
}
