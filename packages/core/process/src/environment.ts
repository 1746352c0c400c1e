/** The environment of a child process: what it needs of ours, and nothing secret. */

/** Carries the marks by which the descendants of a process are found, outermost host first. */
export const marksVariable = 'DSH_PROCESS_MARKS'

const secret = /KEY|PASSWORD|SECRET|TOKEN|CREDENTIAL/i

/**
 * Loader variables change what a program is; agent sockets lend out our identity; the last two make
 * an agent refuse to start inside another. LD_LIBRARY_PATH stays: some machines' programs need it.
 */
const unwanted =
  /^(?:NODE_OPTIONS|LD_PRELOAD|LD_AUDIT|DYLD_.*|BASH_ENV|SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|CLAUDECODE|CLAUDE_CODE_ENTRYPOINT)$/

/** The ambient variables that a child may see, and `extra`, which always wins. */
export function cleanEnvironment(
  extra: Readonly<Record<string, string>> = {},
  ambient: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(ambient)) {
    if (value === undefined || secret.test(name) || unwanted.test(name)) continue
    environment[name] = value
  }
  return { ...environment, ...extra }
}
