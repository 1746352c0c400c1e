/** Why a process could not be started, told from the state of the file system. */
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { HarnessError, messageOf } from '@deepseek-ai/dsh-llm'

export type ProcessErrorCode =
  | 'COMMAND_NOT_FOUND'
  | 'COMMAND_NOT_EXECUTABLE'
  | 'INTERPRETER_MISSING'
  | 'CWD_MISSING'
  | 'CWD_NOT_A_DIRECTORY'
  | 'CWD_NOT_ENTERABLE'
  | 'START_FAILED'

/** A process that could not be started. */
export class ProcessError extends HarnessError<ProcessErrorCode> {
  override readonly name: string = 'ProcessError'
}

/** What was asked for; messages never quote the environment. */
export interface StartAttempt {
  readonly command: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** @throws ProcessError `CWD_MISSING`, `CWD_NOT_A_DIRECTORY`, `CWD_NOT_ENTERABLE`. */
export function checkCwd(cwd: string): void {
  const stats = statSync(cwd, { throwIfNoEntry: false })
  if (stats === undefined) {
    throw new ProcessError('CWD_MISSING', `the working folder "${cwd}" does not exist`)
  }
  if (!stats.isDirectory()) {
    throw new ProcessError('CWD_NOT_A_DIRECTORY', `the working folder "${cwd}" is not a folder`)
  }
  if (!isExecutable(cwd)) {
    throw new ProcessError(
      'CWD_NOT_ENTERABLE',
      `the working folder "${cwd}" may not be entered by this user; change its permissions`,
    )
  }
}

/** Makes a {@link ProcessError} of what `spawn` threw or emitted. */
export function startError(attempt: StartAttempt, cause: unknown): ProcessError {
  try {
    checkCwd(attempt.cwd)
    checkCommand(attempt)
  } catch (error) {
    if (error instanceof ProcessError) return error
    // A file that vanished meanwhile, or may not be read: the cause is still the best answer.
  }
  return failure(attempt.command, cause)
}

function failure(command: string, cause: unknown): ProcessError {
  const text = `command "${command}" could not be started`
  switch ((cause as NodeJS.ErrnoException).code) {
    case 'ERR_INVALID_ARG_VALUE':
      // The cause is left out: it may quote a variable.
      return new ProcessError(
        'START_FAILED',
        `${text}: arguments and environment may hold no null byte`,
      )
    case 'E2BIG':
      return new ProcessError(
        'START_FAILED',
        `${text}: its arguments or its environment are too long; put the text into a file`,
        { cause },
      )
    default:
      return new ProcessError('START_FAILED', `${text}: ${messageOf(cause)}`, { cause })
  }
}

function checkCommand({ command, cwd, env }: StartAttempt): void {
  const files = candidatesOf(command, cwd, env).filter(isFile)
  const program = files.find(isExecutable)
  if (program !== undefined) {
    checkInterpreter(command, program)
    return
  }
  if (files[0] !== undefined) {
    throw new ProcessError(
      'COMMAND_NOT_EXECUTABLE',
      `command "${command}" is not executable; try chmod +x "${files[0]}"`,
    )
  }
  const remedy = command.includes('/') ? 'is there no such file' : 'is it installed and on PATH'
  throw new ProcessError('COMMAND_NOT_FOUND', `no command "${command}"; ${remedy}?`)
}

function checkInterpreter(command: string, program: string): void {
  const interpreter = interpreterOf(program)
  if (interpreter === undefined || (isFile(interpreter) && isExecutable(interpreter))) return
  // Quoted as JSON, so that the carriage return of a Windows line ending shows.
  throw new ProcessError(
    'INTERPRETER_MISSING',
    `command "${command}" needs the interpreter ${JSON.stringify(interpreter)}, which is not there`,
  )
}

function candidatesOf(command: string, cwd: string, env: StartAttempt['env']): string[] {
  if (command.includes('/')) return [resolve(cwd, command)]
  const path = env['PATH'] ?? '/usr/bin:/bin'
  return path.split(delimiter).map((folder) => resolve(cwd, folder, command))
}

function interpreterOf(program: string): string | undefined {
  const file = openSync(program, 'r')
  try {
    const start = Buffer.alloc(256)
    const line = start.toString('utf8', 0, readSync(file, start)).split('\n', 1)[0] ?? ''
    return /^#![ \t]*([^ \t]+)/.exec(line)?.[1]
  } finally {
    closeSync(file)
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // Any reason means no.
    return false
  }
}
