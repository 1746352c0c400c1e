/** The `sessions` part of the command: what is stored, and what was said. */
import { AppError, type AppStreams, sanitize } from '@deepseek-ai/dsh-app'
import type { SessionId } from '@deepseek-ai/dsh-session'
import {
  defaultRoot,
  idsIn,
  listSessions,
  readSession,
  type SessionFile,
} from '@deepseek-ai/dsh-session-jsonl'
import type { Command } from 'commander'
import { bareCommand, exitCodeOf, folderOf } from './arguments.ts'
import { renderSessionTree, renderTranscript } from './render.ts'
import { beginningWith, isUnknownSession, unknownSession } from './session-ids.ts'

interface Options {
  readonly root?: string
}

const rootOption = ['--root <dir>', `folder of the sessions (default: "${defaultRoot()}")`] as const

/**
 * Runs `dsh sessions` and `dsh sessions show <id>`. @returns the exit code.
 * @throws AppError `USAGE`, and what a session that cannot be read throws.
 */
export async function showSessions(argv: readonly string[], streams: AppStreams): Promise<number> {
  const command = bareCommand('dsh sessions', streams)
    .description('Lists the stored sessions, children below their parents.')
    .option(...rootOption)
    .showHelpAfterError('(dsh sessions --help tells the usage)')
    .action(({ root }: Options) => list(root, streams))
  command
    .command('show')
    .description('Prints the transcript of a session.')
    .argument('<id>', 'its id, from the list, or how that begins')
    .option(...rootOption)
    .action((id: string, _, self: Command) =>
      show(id, self.optsWithGlobals<Options>().root, streams),
    )
  try {
    await command.parseAsync(argv, { from: 'user' })
    return 0
  } catch (error) {
    return exitCodeOf(error)
  }
}

async function list(root: string | undefined, streams: AppStreams): Promise<void> {
  const folder = rootOf(root)
  const { sessions, problems } = await listSessions(folder)
  const lines =
    sessions.length === 0
      ? [`no sessions in ${folder}: --root DIR names another folder`]
      : renderSessionTree(sessions, Date.now())
  print(streams.stdout, lines)
  print(
    streams.stderr,
    problems.map((problem) => `dsh: ${problem}`),
  )
}

async function show(id: string, root: string | undefined, { stdout }: AppStreams): Promise<void> {
  print(stdout, renderTranscript(await sessionOf(rootOf(root), id as SessionId)))
}

/** The session of that id, or the only one whose id begins so. */
async function sessionOf(root: string, id: SessionId): Promise<SessionFile> {
  try {
    return await readSession(root, id)
  } catch (error) {
    if (!(error instanceof Error) || !isUnknownSession(error)) throw error
    const meant = beginningWith(id, await idsIn(root))
    if (meant === undefined) throw new AppError('USAGE', unknownSession(error.message))
    return readSession(root, meant)
  }
}

function rootOf(root: string | undefined): string {
  return root === undefined ? defaultRoot() : folderOf(root, '--root')
}

function print(stream: NodeJS.WriteStream, lines: readonly string[]): void {
  // What files hold, and are called, was written by agents.
  stream.write(lines.map((line) => `${sanitize(line)}\n`).join(''))
}
