/** The demo: a scripted agent repairs a small project through children of three kinds; then the world is checked. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listSessions, readSession } from '@deepseek-ai/dsh-session-jsonl'
import { type Check, checksOfLogs, type Log } from './checks.ts'

const prompts = ['The tests fail. Find out why and fix it.', 'Note in CHANGES.md what was done.']
const broken = fileURLToPath(new URL('broken-project', import.meta.url))
const config = fileURLToPath(new URL('cordis.demo.yml', import.meta.url))
const dsh = fileURLToPath(new URL('bin.ts', import.meta.resolve('@deepseek-ai/dsh')))

const start = performance.now()
const folder = await realpath(await mkdtemp(join(tmpdir(), 'dsh-demo-')))
// Ctrl-C goes to the command as well: when it has ended, the folder is removed.
process.on('SIGINT', () => {})
try {
  process.exitCode = (await demo(join(folder, 'project'), join(folder, 'sessions'))) ? 0 : 1
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function demo(project: string, sessions: string): Promise<boolean> {
  await cp(broken, project, { recursive: true })
  const before = await testsPass(project)
  say(`A small project with a failing test lies in ${project}.`)
  say('The model is a script (demo-playbook.yml), so no key and no network is needed.')
  say('The agents, the files, the shell and the tests are real.')
  const codes = await converse(project, sessions)
  say('\nWhat is true now:')
  const checks = [
    { claim: 'the tests failed before', holds: !before },
    { claim: 'both commands ended with exit code 0', holds: codes.every((code) => code === 0) },
    { claim: 'the tests pass', holds: await testsPass(project) },
    ...(await checksOfFiles(project)),
    ...checksOfLogs(await readLogs(sessions)),
  ]
  for (const { claim, holds } of checks) say(`  ${holds ? '✓' : '✗'} ${claim}`)
  return conclude(checks)
}

/** Asks one thing after the other in one session, each time with a new command. */
async function converse(project: string, sessions: string): Promise<(number | null)[]> {
  const codes = []
  for (const prompt of prompts) {
    const parent = await parentIn(sessions)
    const where = parent === undefined ? ['--cwd', project] : ['--resume', parent]
    say(
      `\n$ dsh cordis.demo.yml ${parent === undefined ? '' : `--resume ${parent} `}-p "${prompt}"\n`,
    )
    codes.push(await run([dsh, config, '-p', prompt, ...where], sessions, 'inherit'))
  }
  return codes
}

/** The session that the demo talks to; absent before it has begun. */
async function parentIn(root: string): Promise<string | undefined> {
  const { sessions } = await listSessions(root)
  return sessions.find(({ header }) => header.delegationDepth === 0)?.header.id
}

function conclude(checks: readonly Check[]): boolean {
  const failed = checks.filter(({ holds }) => !holds).length
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  say(
    failed === 0
      ? `\nThe scripted demo did its work in ${seconds} s.`
      : `\nThe demo failed: ${failed} of ${checks.length} claims do not hold.`,
  )
  return failed === 0
}

/** Whether `node --test` succeeds. */
async function testsPass(project: string): Promise<boolean> {
  return (await run(['--test'], undefined, 'ignore', project)) === 0
}

/** Runs Node. @returns its exit code; null when a signal ended it. */
async function run(
  args: readonly string[],
  sessions: string | undefined,
  stdio: 'inherit' | 'ignore',
  cwd?: string,
): Promise<number | null> {
  const child = spawn(process.execPath, args, {
    cwd,
    stdio,
    env: {
      ...process.env,
      // The shell of the agents runs the Node that runs the demo.
      PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
      ...(sessions !== undefined && { DSH_DEMO_SESSIONS: sessions }),
    },
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

async function checksOfFiles(project: string): Promise<Check[]> {
  const test = 'test/price.test.js'
  const document = await textOf(join(project, 'docs/price.md'))
  return [
    {
      claim: 'the test itself is untouched',
      holds: (await textOf(join(project, test))) === (await textOf(join(broken, test))),
    },
    {
      claim: 'docs/price.md quotes the source',
      holds: document.includes('The price tag of an amount in cents'),
    },
    {
      claim: 'CHANGES.md says what was done',
      holds: (await textOf(join(project, 'CHANGES.md'))).includes('leading zero'),
    },
  ]
}

/** The text of a file; empty when there is none. */
async function textOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}

async function readLogs(root: string): Promise<Log[]> {
  const { sessions } = await listSessions(root)
  return Promise.all(sessions.map(({ header }) => readSession(root, header.id)))
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
