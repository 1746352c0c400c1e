/** Turns documented declarations into programs that compile only when they are those of the source. */
import type { CodeBlock } from './blocks.ts'

/** A declaration at the top level of a block, named and, when it is generic, with its parameters. */
export interface Declared {
  readonly kind: string
  readonly name: string
  readonly parameters: string
}

/** Where the names of a page come from. */
export interface Origin {
  /** The package whose declarations the page documents. */
  readonly home: string
  /** The packages whose types these may use, with what they export; the home is one of them. */
  readonly exports: ReadonlyMap<string, ReadonlySet<string>>
}

/** The declarations of a block, those of merged `Events` left out. */
export function declaredIn({ text }: CodeBlock): Declared[] {
  const pattern = /^export (?:declare )?(interface|type|class) (\w+)(<(?:[^<>]|<[^<>]*>)*>)?/gm
  return Array.from(text.matchAll(pattern), ([, kind = '', name = '', parameters = '']) => ({
    kind,
    name,
    parameters,
  }))
}

/** The event names of the `interface Events` in a block. */
export function eventsIn({ text }: CodeBlock): string[] {
  const [, body = ''] = /^interface Events \{\n([^]*?)^\}/m.exec(text) ?? []
  return Array.from(body.matchAll(/^ {2}'([^']+)'\(/gm), ([, name = '']) => name)
}

/** A module that compiles only when each declaration of the block is the one that it documents. */
export function proofOf(block: CodeBlock, origin: Origin): string {
  const declared = declaredIn(block)
  return [
    `import type * as Real from '${origin.home}'`,
    `import type { Events as RealEvents } from '@deepseek-ai/cordis'`,
    ...importsOf(block, origin),
    block.text,
    `type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false`,
    ...declared
      .flatMap(claimsOf)
      .map((claim, index) => `export const claim${index}: ${claim} = true`),
    ...eventsIn(block).map(
      (name, index) =>
        `export const event${index}: Same<Events['${name}'], RealEvents['${name}']> = true`,
    ),
  ].join('\n')
}

function claimsOf({ kind, name, parameters }: Declared): string[] {
  // Classes with private parts are compared by their public face: TypeScript tells them by name.
  if (kind === 'class') {
    return [
      `Same<Pick<${name}, keyof ${name}>, Pick<Real.${name}, keyof Real.${name}>>`,
      `Same<ConstructorParameters<typeof ${name}>, ConstructorParameters<typeof Real.${name}>>`,
    ]
  }
  const plain = `Same<${name}, Real.${name}>`
  if (parameters === '') return [plain]
  const bounds = parameters.replaceAll(/ = [^,>]+/g, '')
  const names = `<${Array.from(bounds.matchAll(/(\w+)(?: extends [^,]+)?/g), ([, id]) => id).join(', ')}>`
  return [plain, `Same<${bounds}() => ${name}${names}, ${bounds}() => Real.${name}${names}>`]
}

/** Imports of what a block names and does not declare. */
function importsOf(block: CodeBlock, { home, exports }: Origin): string[] {
  const known = new Set(declaredIn(block).map(({ name }) => name))
  const words = new Set(block.text.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, '').match(/\b[A-Za-z]\w*/g))
  const order = [home, ...[...exports.keys()].filter((name) => name !== home)]
  return order.flatMap((from) => {
    const names = [...words].filter((word) => exports.get(from)?.has(word) && !known.has(word))
    for (const name of names) known.add(name)
    return names.length === 0 ? [] : [`import type { ${names.join(', ')} } from '${from}'`]
  })
}
