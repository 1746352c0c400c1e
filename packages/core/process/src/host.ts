/** What ends children together with their host: in its exit handler, and from outside when it is killed. */
import { type ChildProcess, spawn } from 'node:child_process'

const endings = new Set<() => void>()

function endAll(): void {
  for (const end of endings) end()
}

/** Calls `end` when the host exits; one listener serves all. @returns a function that takes it back. */
export function atHostExit(end: () => void): () => void {
  if (endings.size === 0) process.on('exit', endAll)
  endings.add(end)
  return () => {
    endings.delete(end)
    if (endings.size === 0) process.off('exit', endAll)
  }
}

/**
 * Reads the mark, the group and a grace in seconds, then waits for the end of its input: the host
 * closes that by dying. The birth of the leader tells whether the group's number is still its own.
 * A mark that is not whole would be found in every process.
 */
const script = `
trap '' HUP INT TERM
born() {
  if [ -r /proc/self/stat ]; then
    read -r line 2>/dev/null <"/proc/$1/stat" || return
    set -- \${line##*)}
    echo "\${20}"
  else ps -o lstart= -p "$1"; fi
}
marked() {
  if [ -r /proc/self/stat ]; then grep -lsF "$mark" /proc/[0-9]*/environ | tr -dc '0-9\\n'
  else ps -AEww -o pid=,command= | while read -r pid line; do
    case $line in *"$mark"*) echo "$pid" ;; esac
  done; fi
}
parents() {
  if [ -r /proc/self/stat ]; then for file in /proc/[0-9]*/stat; do
    read -r line 2>/dev/null <"$file" || continue
    set -- \${line##*)}
    echo "\${line%% *} $2"
  done; else ps -A -o pid=,ppid=; fi
}
descend() {
  pairs=$(parents) more=1
  while [ -n "$more" ]; do
    more=
    set -- $pairs
    while [ $# -gt 1 ]; do
      case " $all " in *" $1 "*) ;; *" $2 "*) all="$all $1" more=1 ;; esac
      shift 2
    done
  done
}
read -r mark || exit 0
[ \${#mark} -eq 24 ] || exit 0
read -r group grace && birth=$(born "$group")
read -r end
[ "\${grace:-0}" -gt 0 ] && sleep "$grace"
[ -n "$birth" ] && [ "$(born "$group")" = "$birth" ] && all=$group || group=
for round in 1 2 3 4 5; do
  all=$(echo $all $(marked))
  [ -n "$all" ] || exit 0
  descend
  [ -n "$group" ] && kill -s KILL -- "-$group"
  kill -s KILL $all
  sleep 1
  all= group=
done
`

export interface Guard {
  /** Tells what to kill, and how long after the host's death. */
  watch(group: number, graceS: number): void
  /** Ends the guard, and waits until it is gone. */
  end(): Promise<void>
}

/** Starts a shell that outlives the host for a moment, and kills what carries `mark`. */
export function startGuard(mark: string, path = '/usr/bin:/bin'): Guard {
  const guard: ChildProcess = spawn('/bin/sh', ['-c', script, 'dsh-guard'], {
    cwd: '/',
    detached: true,
    env: { PATH: path },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const { promise: gone, resolve } = Promise.withResolvers<void>()
  guard.once('exit', resolve)
  // Without a guard the child only loses this protection.
  guard.on('error', resolve)
  guard.stdin?.on('error', () => {})
  guard.stdin?.write(`${mark}\n`)
  guard.unref()
  return {
    watch: (group, graceS) => void guard.stdin?.write(`${group} ${graceS}\n`),
    end: () => {
      guard.ref()
      guard.kill('SIGKILL')
      return gone
    },
  }
}
