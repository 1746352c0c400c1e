/** Checks commands against what the workspace has: scripts, programs, options and paths. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { CodeBlock } from './blocks.ts'
import { type Manifest, root } from '../workspace.ts'

export interface Shell {
  readonly manifest: Manifest
  /** Options of the `dsh` command. */
  readonly options: ReadonlySet<string>
  /** Programs that are not ours, and so are taken on trust. */
  readonly foreign: ReadonlySet<string>
}

/** What is wrong with the commands of a block. They start in the root, or where a comment says so. */
export function problemsOfSh({ file, text }: CodeBlock, shell: Shell): string[] {
  const made = new Set<string>()
  let folder = root
  return text.split('\n').flatMap((line) => {
    if (line.startsWith('# in this folder')) folder = join(root, dirname(file))
    const commands = withoutComment(line)
      .split(/ && | \| /)
      .map(wordsOf)
    return commands
      .filter((words) => words.length > 0)
      .flatMap((words) => {
        const problems = problemsOfCommand(words, shell)
        const isCopy = words[0] === 'cp'
        const paths = words.slice(1).filter(isPath)
        const target = isCopy ? paths.pop() : undefined
        if (target !== undefined) made.add(target)
        const missing = paths.filter((path) => !isThere(path, folder, made))
        return [...problems, ...missing.map((path) => `there is no "${path}"`)]
      })
  })
}

function problemsOfCommand(words: readonly string[], shell: Shell): string[] {
  const [program = '', ...rest] = words
  switch (program) {
    case 'export':
    case 'cp':
      return []
    case 'npx': {
      const [tool = '', ...more] = rest.filter((word) => word !== '--yes')
      if (tool === shell.manifest.packageManager) return problemsOfScript(more, shell)
      return shell.foreign.has(tool)
        ? []
        : [`npx runs "${tool}", not "${shell.manifest.packageManager}"`]
    }
    case 'pnpm':
      return problemsOfScript(rest, shell)
    case 'dsh':
      return problemsOfDsh(rest, shell)
    // The Node of the scripts, for whoever starts the command without them.
    case 'node_modules/node/bin/node':
      return problemsOfDsh(rest, shell)
    default:
      return shell.foreign.has(program) ? [] : [`"${program}" is no program that the docs may use`]
  }
}

function problemsOfScript([script = '', ...rest]: readonly string[], shell: Shell): string[] {
  if (script === 'exec') return problemsOfCommand(rest, shell)
  if (script === 'dsh') return problemsOfDsh(rest, shell)
  if (script === 'install') return []
  const { scripts = {} } = shell.manifest
  return Object.hasOwn(scripts, script) ? [] : [`there is no script "${script}"`]
}

function problemsOfDsh(words: readonly string[], { options }: Shell): string[] {
  return words
    .filter((word) => /^--?\w/.test(word) && !options.has(word))
    .map((word) => `dsh has no option "${word}"`)
}

/** A path of the workspace; what begins with a tilde, a slash or an ellipsis is the reader's own. */
const isPath = (word: string): boolean =>
  /^[\w@.-]+(\/[\w@.-]+)+\/?$|\.ya?ml$/.test(word) && !/[~…]/.test(word) && !word.includes('@')

function isThere(path: string, folder: string, made: ReadonlySet<string>): boolean {
  const isMade = [...made].some((target) => path === target || path.startsWith(`${target}/`))
  return isMade || existsSync(join(folder, path))
}

const withoutComment = (line: string): string => line.replace(/(^|\s)#\s.*$/, '')

/** The words of a command without its variables; quotes keep words together. */
function wordsOf(command: string): string[] {
  const words = command.match(/"[^"]*"|'[^']*'|\S+/g) ?? []
  const first = words.findIndex((word) => !/^[A-Z_]+=/.test(word))
  return first === -1 ? [] : words.slice(first)
}
