/** Runs ripgrep as a child process, from start to proof that it is gone. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { rgPath } from '@vscode/ripgrep'
import { FsError } from './errors.ts'

/** Why a search ended before its end: it found enough, or it took too long. */
export type SearchCut = 'results' | 'time'

/** One run of ripgrep. */
export interface RipgrepSearch {
  readonly workspace: string
  /** Where it runs: the workspace, a folder below it, or one outside. */
  readonly folder: string
  readonly args: readonly string[]
  /** What is searched, relative to `folder`; begins with `./`. */
  readonly target: string
  /** What ends a record of the output. */
  readonly terminator: '\0' | '\n'
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Takes one record; false ends the search. */
  readonly take: (record: string) => boolean
}

type Child = ChildProcessByStdio<null, Readable, Readable>

/**
 * Runs ripgrep to its end, the first refused record, the deadline or the abort.
 * @throws FsError `INVALID_PATTERN`, `SEARCH_FAILED`, and the signal's reason.
 */
export async function ripgrep(search: RipgrepSearch): Promise<SearchCut | undefined> {
  const { signal, timeoutMs } = search
  signal?.throwIfAborted()
  let cut: SearchCut | undefined
  const child = start(search)
  const cutOff = (reason: SearchCut): void => {
    cut ??= reason
    child.kill('SIGKILL')
  }
  const abort = (): void => void child.kill('SIGKILL')
  const timer = setTimeout(cutOff, timeoutMs, 'time')
  signal?.addEventListener('abort', abort, { once: true })
  const split = createSplitter(search.terminator)
  child.stdout.on('data', (text: string) => {
    if (cut === undefined && !split(text).every(search.take)) cutOff('results')
  })
  try {
    const { code, stderr } = await endOf(child)
    signal?.throwIfAborted()
    // 1 means that nothing was found; files that cannot be read are passed over without a word.
    if (cut === undefined && code !== 0 && code !== 1) throw patternError(stderr)
    return cut
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

const commonArgs = [
  '--no-config',
  '--no-ignore-global',
  '--no-messages',
  '--hidden',
  '--color=never',
  '--sort=path',
]

/** After the caller's own globs, since the last one wins. */
const lastArgs = ['--glob=!**/.git', '--glob=!.dsh-*.tmp']

function start({ workspace, folder, args, target }: RipgrepSearch): Child {
  const options = [...commonArgs, ...ignoreArgs(workspace, folder), ...args, ...lastArgs]
  try {
    const child = spawn(rgPath, [...options, '--', target], {
      cwd: folder,
      env: {},
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stdout.setEncoding('utf8')
    child.stderr.setEncoding('utf8')
    return child
  } catch (error) {
    const text = `the pattern cannot be searched for: ${whyNot(error)}`
    throw new FsError('INVALID_PATTERN', text, { cause: error })
  }
}

/** Arguments that no process can take. */
function whyNot(error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ERR_INVALID_ARG_VALUE':
      return 'it has a NUL character, which no text file has: leave that out'
    case 'E2BIG':
      return 'it is too long: use a shorter one'
    default:
      return messageOf(error)
  }
}

/**
 * In a git repository its own ignore files count, up to its root. Elsewhere they count too, but those
 * above the workspace do not: one in a home folder may ignore everything.
 */
function ignoreArgs(workspace: string, folder: string): string[] {
  if (isInRepository(folder)) return []
  return folder === workspace ? ['--no-require-git', '--no-ignore-parent'] : ['--no-require-git']
}

function isInRepository(folder: string): boolean {
  if (existsSync(join(folder, '.git'))) return true
  const parent = dirname(folder)
  return parent !== folder && isInRepository(parent)
}

function createSplitter(terminator: string): (text: string) => string[] {
  let rest = ''
  return (text) => {
    const records = (rest + text).split(terminator)
    rest = records.pop() ?? ''
    return records
  }
}

const maxStderr = 4096

function endOf(child: Child): Promise<{ readonly code: number | null; readonly stderr: string }> {
  let stderr = ''
  child.stderr.on('data', (text: string) => {
    // It begins with the pattern, however long that is, and ends with what is wrong.
    stderr = (stderr + text).slice(-maxStderr)
  })
  return new Promise((resolve, reject) => {
    child.once('close', (code) => resolve({ code, stderr }))
    child.once('error', (error) => {
      const text = `the search could not be started: ${error.message}`
      reject(new FsError('SEARCH_FAILED', text, { cause: error }))
    })
  })
}

/** Only the core of ripgrep's message: the rest speaks of its command line. */
function patternError(stderr: string): FsError {
  const [line = ''] = /(?<=^error: ).*/m.exec(stderr) ?? /(?<=^rg: ).*/m.exec(stderr) ?? [stderr]
  const reason = shortened(line.trim()) || 'ripgrep gave no reason'
  return new FsError(
    'INVALID_PATTERN',
    `the pattern cannot be used: ${reason}; write a regular expression for one line, without look-around and backreferences, or a glob with balanced brackets`,
  )
}

/** A glob is repeated before what is wrong with it. */
function shortened(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 100)}…${text.slice(-100)}`
}
