/** The packages of the workspace, read from their own manifests. */
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The part of a package.json that matters here. */
export interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly exports?: unknown
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly packageManager?: string
}

export interface WorkspacePackage {
  readonly name: string
  /** The folder's own name, for example `subagent-acp`. */
  readonly shortName: string
  /** The folder above it, for example `core`; `examples` and the root's own folders are groups too. */
  readonly group: string
  /** Relative to the root, for example `packages/core/llm`. */
  readonly folder: string
  readonly manifest: Manifest
}

/** Absolute path of the workspace. */
export const root: string = fileURLToPath(new URL('../../../..', import.meta.url)).replace(
  /\/$/,
  '',
)

/** The entry module of a package that is meant to be imported. */
export const entryOf = ({ folder }: WorkspacePackage): string => join(root, folder, 'src/index.ts')

export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Manifest
}

/** All packages, those of `packages/` first, sorted by folder. */
export function readWorkspace(): WorkspacePackage[] {
  const folders = ['packages/*/*', 'examples/*', 'bench'].flatMap((pattern) =>
    globSync(`${pattern}/package.json`, { cwd: root }).map(dirname).toSorted(),
  )
  return folders.map((folder) => {
    const manifest = readManifest(folder)
    const group = basename(dirname(folder)) === '.' ? folder : basename(dirname(folder))
    return { name: manifest.name, shortName: basename(folder), group, folder, manifest }
  })
}

/** The TypeScript files below folders of a package, absolute, sorted. */
export function filesOf(folder: string, ...patterns: readonly string[]): string[] {
  return patterns
    .flatMap((pattern) => globSync(pattern, { cwd: join(root, folder) }))
    .filter((file) => !/(^|\/)(node_modules|lib)\//.test(file))
    .toSorted()
    .map((file) => join(root, folder, file))
}
