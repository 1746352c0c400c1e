/** What helps when a package cannot be imported: never the advice to install a name that nobody knows. */
import { existsSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pathOf } from './error-text.ts'
import { nearest } from './keys.ts'

const ownScope = '@deepseek-ai'

/** What is wrong with a package that cannot be found from a folder, and the remedy. */
export function missingPackage(name: string, folder: string): string {
  const known = knownPackages(name, folder)
  const manifest = manifestFor(folder)
  if (known.includes(name)) {
    return `cannot be found from ${folder}: add it to "dependencies" of ${manifest}, then install`
  }
  const similar = similarTo(name, known)
  return similar === undefined
    ? `is not installed: check the name; what it stands for must be in "dependencies" of ${manifest}`
    : `is not installed: did you mean "${similar}"?`
}

/** A name without its scope may belong to anybody. */
function similarTo(name: string, known: readonly string[]): string | undefined {
  if (name.startsWith('@')) return nearest(name, known)
  const prefix = `${ownScope}/`
  const own = known.filter((candidate) => candidate.startsWith(prefix))
  const base = nearest(
    name,
    own.map((candidate) => candidate.slice(prefix.length)),
  )
  return base === undefined ? undefined : `${prefix}${base}`
}

/** Packages of the same scope and of ours that are installed where Node looks, where pnpm hides them, or with us. */
function knownPackages(name: string, folder: string): string[] {
  const scopes = name.startsWith('@') ? [ownScope, dirname(name)] : [ownScope]
  const lookup = [join(folder, 'cordis.yml'), fileURLToPath(import.meta.url)]
    .flatMap((from) => createRequire(from).resolve.paths(name) ?? [])
    .flatMap((modules) => [modules, join(modules, '.pnpm/node_modules')])
  return lookup.flatMap((modules) =>
    scopes.flatMap((scope) => {
      try {
        return readdirSync(join(modules, scope)).map((entry) => `${scope}/${entry}`)
      } catch {
        return [] // Most of the folders that Node would look into do not exist.
      }
    }),
  )
}

function manifestFor(folder: string): string {
  for (let above = folder; ; above = dirname(above)) {
    const manifest = join(above, 'package.json')
    if (existsSync(manifest)) return pathOf(manifest)
    if (above === dirname(above)) return `a new package.json in ${folder}`
  }
}
