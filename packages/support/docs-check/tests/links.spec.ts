/** Links of the docs lead somewhere. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { root } from '../src/workspace.ts'

const pages = [
  '*.md',
  'docs/**/*.md',
  'packages/*/*/README.md',
  'examples/*/README.md',
  'bench/*.md',
]
const files = globSync(pages, { cwd: root }).toSorted()

describe('the links of the docs', () => {
  test.each(files)('lead to files and headings that exist: %s', (file) => {
    const text = readFileSync(join(root, file), 'utf8')
    const targets = Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, target = '']) => target)
    const own = targets.filter((target) => !/^[a-z]+:/.test(target))

    expect(own.filter((target) => !leadsSomewhere(file, target))).toEqual([])
  })
})

function leadsSomewhere(file: string, target: string): boolean {
  const [path = '', heading] = target.split('#')
  const page = path === '' ? join(root, file) : join(root, dirname(file), path)
  if (!existsSync(page)) return false
  return heading === undefined || headingsOf(page).includes(heading)
}

/** The anchors of a page, as they are made of its headings. */
function headingsOf(page: string): string[] {
  return Array.from(readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm), ([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  )
}
