/** Places the nodes of a layered graph so that few of its edges cross. */

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Layout {
  /** Centres, by name. */
  readonly nodes: ReadonlyMap<string, Point>
  /** The points that an edge passes, from its first node to its second. */
  readonly edges: readonly (readonly Point[])[]
  readonly width: number
  readonly height: number
}

export interface LayeredGraph {
  /** The names of each layer, from the top. */
  readonly layers: readonly (readonly string[])[]
  /** From a higher to a lower layer. */
  readonly edges: readonly (readonly [string, string])[]
  readonly widthOf: (name: string) => number
}

const layerHeight = 76
const gap = 26
const bendWidth = 10
const sweeps = 24

/** The same graph always gets the same layout. */
export function layOut({ layers, edges, widthOf }: LayeredGraph): Layout {
  const { rows, chains } = withBends(layers, edges)
  const neighbours = neighboursIn(chains)
  const ordered = order(rows, neighbours)
  const widths = (name: string): number => (isBend(name) ? bendWidth : widthOf(name))
  const rowWidth = (row: readonly string[]): number =>
    row.reduce((sum, name) => sum + widths(name) + gap, -gap)
  const width = Math.max(...ordered.map(rowWidth))
  const places = new Map<string, Point>()
  for (const [index, row] of ordered.entries()) {
    let x = (width - rowWidth(row)) / 2
    for (const name of row) {
      places.set(name, { x: Math.round(x + widths(name) / 2), y: index * layerHeight })
      x += widths(name) + gap
    }
  }
  return {
    nodes: new Map([...places].filter(([name]) => !isBend(name))),
    edges: chains.map((chain) => chain.map((name) => places.get(name) as Point)),
    width: Math.ceil(width),
    height: (layers.length - 1) * layerHeight,
  }
}

const isBend = (name: string): boolean => name.includes('>')

/** Gives an edge that passes layers a place in each of them. */
function withBends(
  layers: LayeredGraph['layers'],
  edges: LayeredGraph['edges'],
): { rows: string[][]; chains: string[][] } {
  const rows = layers.map((names) => [...names])
  const layerOf = new Map(layers.flatMap((names, index) => names.map((name) => [name, index])))
  const chains = edges.map(([from, to]) => {
    const chain = [from]
    for (let layer = (layerOf.get(from) ?? 0) + 1; layer < (layerOf.get(to) ?? 0); layer += 1) {
      const bend = `${from}>${to}>${layer}`
      rows[layer]?.push(bend)
      chain.push(bend)
    }
    return [...chain, to]
  })
  return { rows, chains }
}

function neighboursIn(chains: readonly (readonly string[])[]): Map<string, string[]> {
  const neighbours = new Map<string, string[]>()
  for (const chain of chains) {
    for (const [index, name] of chain.entries()) {
      const beside = [chain[index - 1], chain[index + 1]].filter((other) => other !== undefined)
      neighbours.set(name, [...(neighbours.get(name) ?? []), ...beside])
    }
  }
  return neighbours
}

/** Sorts each row by the mean place of its neighbours in the row before, down and up in turn. */
function order(rows: readonly string[][], neighbours: ReadonlyMap<string, string[]>): string[][] {
  let result = rows.map((row) => [...row])
  for (let sweep = 0; sweep < sweeps; sweep += 1) {
    const isDown = sweep % 2 === 0
    const sequence = isDown ? result : result.toReversed()
    for (const [index, row] of sequence.entries()) {
      const fixed = sequence[index - 1]
      if (fixed === undefined) continue
      const placeOf = new Map(fixed.map((name, place) => [name, (place + 0.5) / fixed.length]))
      const wanted = new Map(
        row.map((name, place) => {
          const places = (neighbours.get(name) ?? []).flatMap((other) => placeOf.get(other) ?? [])
          const mean = places.reduce((sum, value) => sum + value, 0) / places.length
          return [name, places.length === 0 ? (place + 0.5) / row.length : mean]
        }),
      )
      row.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0))
    }
    result = isDown ? sequence : sequence.toReversed()
  }
  return result
}
