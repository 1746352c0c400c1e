/** Makes modules of the TypeScript blocks of a page. */
import type { CodeBlock } from './blocks.ts'

/** What a snippet may use without saying where it comes from, beside what its own package exports. */
const givens: Readonly<Record<string, string>> = {
  Context: `import type { Context } from '@deepseek-ai/cordis'`,
  ctx: `declare const ctx: import('@deepseek-ai/cordis').Context`,
  agent: `declare const agent: import('@deepseek-ai/dsh-agent').Agent`,
  parent: `declare const parent: import('@deepseek-ai/dsh-agent').Agent`,
  session: `declare const session: import('@deepseek-ai/dsh-session').Session`,
  id: `declare const id: import('@deepseek-ai/dsh-session').SessionId`,
  z: `import { z } from 'zod'`,
}

/** The package whose README a page is, and what it exports. */
export interface Home {
  readonly name: string
  readonly types: ReadonlySet<string>
  readonly values: ReadonlySet<string>
}

/**
 * A module of a block. One that imports anything is taken as it is: it is a file to be copied.
 * Others are snippets, and may use the {@link givens} and what their own package exports.
 */
export function moduleOf({ text, given }: CodeBlock, home: Home | undefined): string {
  if (/^import /m.test(text)) return `${given}\n${text}`
  const words = new Set(text.match(/\b[A-Za-z]\w*/g))
  const isModule = /^export /m.test(text)
  const isOwn = (word: string): boolean =>
    isModule && new RegExp(`\\b(const|function|class|interface|type) ${word}\\b`).test(text)
  const names = [...words].filter(
    (word) => !isOwn(word) && !new RegExp(`\\b${word}\\b`).test(given),
  )
  const imports = names.flatMap((word) => {
    if (home?.values.has(word) === true) return word
    return home?.types.has(word) === true ? `type ${word}` : []
  })
  return [
    ...(imports.length > 0 ? [`import { ${imports.join(', ')} } from '${home?.name}'`] : []),
    ...names
      .filter((word) => !home?.values.has(word) && !home?.types.has(word))
      .flatMap((word) => (Object.hasOwn(givens, word) ? [givens[word] ?? ''] : [])),
    given,
    // In a block of its own, so that what the snippet declares may have any name.
    isModule ? text : `export {}\n{\n${text}\n}`,
  ].join('\n')
}
