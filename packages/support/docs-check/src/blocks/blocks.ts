/** The code blocks of Markdown pages. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../workspace.ts'

export interface CodeBlock {
  /** Relative to the root. */
  readonly file: string
  /** Of the opening fence, from 1. */
  readonly line: number
  /** What follows the fence; empty when nothing does. */
  readonly language: string
  readonly text: string
  /** Declarations from a `<!-- given: … -->` right before the block: what its reader knows by then. */
  readonly given: string
}

const pattern =
  /(?:^[ ]*<!-- given:(?<given>[^]*?)-->\n\n?)?^(?<indent>[ ]*)```(?<language>\w*)\n(?<text>[^]*?)^[ ]*```$/gm

/** The blocks of the pages that match the patterns, page by page. */
export function readBlocks(...patterns: readonly string[]): CodeBlock[] {
  const files = globSync([...patterns], { cwd: root }).toSorted()
  return files.flatMap((file) => blocksOf(file, readFileSync(join(root, file), 'utf8')))
}

/** The blocks of one page. */
export function blocksOf(file: string, markdown: string): CodeBlock[] {
  return Array.from(markdown.matchAll(pattern), (match) => {
    const { given = '', indent = '', language = '', text = '' } = match.groups ?? {}
    const fence = match.index + match[0].indexOf('```')
    return {
      file,
      line: markdown.slice(0, fence).split('\n').length,
      language,
      text: indent === '' ? text : text.replaceAll(`\n${indent}`, '\n').slice(indent.length),
      given: given.trim(),
    }
  })
}

/** Where a block stands, for messages. */
export const placeOf = ({ file, line }: CodeBlock): string => `${file}:${line}`
