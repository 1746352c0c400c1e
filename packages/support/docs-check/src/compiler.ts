/** TypeScript's own parser and checker, over files on disk and over files that exist only here. */
import { join } from 'node:path'
import { API, type Diagnostic, type Project } from 'typescript/unstable/sync'
import { entryOf, readWorkspace, root } from './workspace.ts'

/** A program that is open until it is disposed. */
export interface OpenProject extends Disposable {
  readonly project: Project
}

/** Opens every TypeScript file of the workspace. */
export function openWorkspace(): OpenProject {
  const api = new API({ cwd: root })
  const config = join(root, 'tsconfig.base.json')
  const project = api.updateSnapshot({ openProjects: [config] }).getProject(config)
  if (project === undefined) throw new Error(`TypeScript did not open "${config}"`)
  return { project, [Symbol.dispose]: () => api.close() }
}

/** Texts by file name. */
export type Files = Readonly<Record<string, string>>

const folder = join(root, 'packages/support/docs-check/unwritten')

/**
 * Type-checks programs of files that exist only here; they can import every package of the
 * workspace by name. What one program imports augments nothing in another.
 * @returns what is wrong, by the name of the file.
 */
export function checkPrograms(programs: readonly Files[]): Map<string, string[]> {
  const contents = new Map<string, string>()
  const configs = programs.map((files, index) => {
    const names = Object.keys(files)
    for (const name of names) contents.set(join(folder, name), files[name] ?? '')
    const config = join(folder, `tsconfig.${index}.json`)
    contents.set(config, JSON.stringify(configOf(names)))
    return config
  })
  const api = new API({ cwd: root, fs: over(contents) })
  try {
    const snapshot = api.updateSnapshot({ openProjects: configs })
    const problems = configs.flatMap((config, index) => {
      const { program } = snapshot.getProject(config) as Project
      return Object.entries(programs[index] ?? {}).map(([name, text]) => {
        const path = join(folder, name)
        const found = [
          ...program.getSyntacticDiagnostics(path),
          ...program.getSemanticDiagnostics(path),
        ]
        return [name, found.map((problem) => textOf(problem, text))] as const
      })
    })
    return new Map(problems)
  } finally {
    api.close()
  }
}

function configOf(files: readonly string[]): object {
  const packages = readWorkspace().filter(({ manifest }) => manifest.exports !== undefined)
  return {
    extends: join(root, 'tsconfig.base.json'),
    compilerOptions: {
      noEmit: true,
      noUnusedLocals: false,
      noUnusedParameters: false,
      paths: Object.fromEntries(packages.map((item) => [item.name, [entryOf(item)]])),
    },
    files,
    include: [],
  }
}

/** Shows files as if they lay on disk; `undefined` means the disk is asked. */
function over(contents: ReadonlyMap<string, string>): {
  readFile(path: string): string | undefined
  fileExists(path: string): true | undefined
  directoryExists(path: string): true | undefined
} {
  return {
    readFile: (path) => contents.get(path),
    fileExists: (path) => contents.has(path) || undefined,
    directoryExists: (path) => path === folder || undefined,
  }
}

function textOf({ pos, text, messageChain = [] }: Diagnostic, source: string): string {
  const line = source.slice(0, pos).split('\n').length
  const quoted = source.split('\n')[line - 1]?.trim() ?? ''
  return `${[text, ...messageChain.map((link) => link.text)].join(' ')} in: ${quoted}`
}
