/** The guide whose yml the tests load. */
import { readFileSync } from 'node:fs'

const guide = readFileSync(
  new URL('../../../../../docs/guides/acp-agents.md', import.meta.url),
  'utf8',
)

/** The headings of all sections that have a yml, the host's first. */
export const sections: readonly string[] = Array.from(
  guide.matchAll(/^## (.+)\n(?=(?:(?!^## )[^])*?^```yaml$)/gm),
  ([, heading = '']) => heading,
)

/** The text of a section, without its heading. */
export function sectionOf(heading: string): string {
  const section = guide.split(/^## /m).find((text) => text.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`the guide has no section "${heading}"`)
  return section
}

/** The one block of a language in a section. */
export function blockOf(heading: string, language: string): string {
  const [, block, ...more] = sectionOf(heading).split(`\`\`\`${language}\n`)
  if (block === undefined || more.length > 0) {
    throw new Error(`section "${heading}" of the guide needs one block of ${language}`)
  }
  return block.slice(0, block.indexOf('```'))
}
