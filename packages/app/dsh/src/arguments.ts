/** The command line. */
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { AppError, type AppRequest, type AppStreams } from '@deepseek-ai/dsh-app'
import type { SessionId } from '@deepseek-ai/dsh-session'
import { Command, CommanderError, Option } from 'commander'

/** What the command line asks for; a `prompt` of `-` stands for stdin. */
export interface Arguments {
  readonly config: string
  readonly request: AppRequest
}

interface Options {
  readonly prompt?: string
  readonly output: AppRequest['output']
  readonly cwd?: string
  readonly model?: string
  readonly resume?: string
}

/**
 * Reads the command line.
 * @returns an exit code when there is nothing to run: help, version, or a mistake that was told.
 * @throws AppError `USAGE` for values that do not fit.
 */
export function parseArguments(argv: readonly string[], streams: AppStreams): Arguments | number {
  const command = createCommand(streams)
  try {
    command.parse(argv, { from: 'user' })
  } catch (error) {
    return exitCodeOf(error)
  }
  const [config = ''] = command.args
  return { config, request: requestOf(command.opts<Options>()) }
}

/** The code of a command line that asked for help or was told its mistake. @throws anything else. */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof CommanderError)) throw error
  return error.exitCode === 0 ? 0 : 2
}

function createCommand(streams: AppStreams): Command {
  return bareCommand('dsh', streams)
    .description('Boots a yml of cordis plugins and serves the front end that it names.')
    .argument('<config.yml>', 'the configuration; a .env beside it is read, set variables win')
    .option('-p, --prompt <text>', 'answer this and end; "-" reads it from stdin')
    .addOption(
      new Option('--output <kind>', 'what stdout carries, with -p')
        .choices(['text', 'json', 'events'])
        .default('text'),
    )
    .option('--cwd <dir>', 'folder that the agent works in (default: the current one)')
    .option('--model <name>', 'a model that an entry of the yml serves')
    .option(
      '--resume <id>',
      'go on with a stored session, named by how its id begins; "dsh sessions" lists them',
    )
    .version(version(), '--version', 'print the version')
    .addHelpText('after', helpTail)
    .showHelpAfterError('(dsh --help lists the options)')
}

/** A command that throws in the place of exiting, and writes to these streams without colour. */
export function bareCommand(name: string, { stdout, stderr }: AppStreams): Command {
  return new Command(name)
    .helpOption('--help', 'print this help')
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      outputError: (message, write) => write(message.replace(/^error: /, 'dsh: ')),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
}

const helpTail = `
dsh sessions lists the stored sessions, dsh sessions show <id> prints one.
Exit codes: 0 completed, 1 the agent failed, 2 usage or configuration,
129 after SIGHUP, 130 after SIGINT, 141 the reader of stdout has gone, 143 after SIGTERM.
DSH_DEBUG=1 prints stack traces and everything that plugins log.`

function requestOf({ prompt, output, cwd, model, resume }: Options): AppRequest {
  if (prompt !== undefined && prompt.trim() === '')
    throw usage('-p needs a prompt, not an empty text')
  if (prompt === undefined && output !== 'text')
    throw usage(`--output ${output} needs a prompt: add -p`)
  if (cwd !== undefined && resume !== undefined) {
    throw usage('--cwd cannot go with --resume: a session stays in its folder')
  }
  return {
    ...(prompt !== undefined && { prompt }),
    output,
    cwd: folderOf(cwd ?? '.'),
    ...(model !== undefined && { model }),
    ...(resume !== undefined && { resume: resume as SessionId }),
  }
}

/** The absolute path of a folder that an option names. @throws AppError `USAGE` when there is none. */
export function folderOf(path: string, option = '--cwd'): string {
  const folder = resolve(path)
  const stats = statSync(folder, { throwIfNoEntry: false })
  if (stats === undefined) throw usage(`${option} "${path}" does not exist: give a folder`)
  if (!stats.isDirectory()) throw usage(`${option} "${path}" is not a folder`)
  return folder
}

function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

function usage(message: string): AppError {
  return new AppError('USAGE', message)
}
