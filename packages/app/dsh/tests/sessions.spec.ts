import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { dsh, type Finished, project, refusal, startDsh } from './helpers.ts'

/** Each prompt is answered by how many there were; the rest makes children, tools and long waits. */
const rules = JSON.stringify([
  { when: { user: '^delegate (.*)$', step: 0 }, reply: delegation('{{user.1}}') },
  { when: { user: '^loop$' }, reply: delegation('use a tool') },
  { when: { user: '^use a tool$', step: 0 }, reply: { calls: [{ name: 'quick' }] } },
  { when: { user: '^wait$', step: 0 }, reply: { text: 'I wait.', calls: [{ name: 'wait' }] } },
  { when: { user: '^stall$' }, reply: { text: 'I think', stall: true } },
  { reply: { text: 'turn {{turn}}: {{user}}', usage: { inputTokens: 900, outputTokens: 100 } } },
])

function delegation(prompt: string) {
  return { calls: [{ name: 'subagent', input: { description: 'a task', prompt } }] }
}

const yml = `
- name: '@deepseek-ai/dsh-session-jsonl'
  config: { root: ./kept }
- name: '@deepseek-ai/dsh-agent-core'
  config: { maxSteps: 100000, abortGraceMs: 20, stopGraceMs: 20 }
- name: '@deepseek-ai/dsh-llm-scripted'
  config: { rules: ${rules} }
- name: '@deepseek-ai/dsh-subagent'
  config: { maxPerTurn: 100000 }
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: spawn }
- name: ./tools.ts
- name: '@deepseek-ai/dsh-ui-terminal'
`

const tools = `
import { writeFileSync } from 'node:fs'
import { z } from 'zod'
export const inject = ['tools']
export function apply(ctx) {
  const register = (name, execute) =>
    ctx.tools.register({ name, description: name, parameters: z.object({}), execute })
  register('quick', async () => 'quick')
  register('wait', () => new Promise(() => writeFileSync('waiting', '')))
}
`

interface Report {
  readonly answer: string
  readonly stopReason: string
  readonly sessionId: string
}

async function createProject(): Promise<string> {
  return project({ 'dsh.yml': yml, 'tools.ts': tools })
}

async function ask(cwd: string, prompt: string, ...args: string[]): Promise<Report> {
  const finished = await dsh(['dsh.yml', '-p', prompt, '--output', 'json', ...args], { cwd })
  if (finished.code !== 0) throw new Error(`${finished.code}: ${finished.stderr}`)
  return JSON.parse(finished.stdout) as Report
}

/** A file that a kill has left before its first line was whole is no session. */
function idsIn(cwd: string): string[] {
  const folder = join(cwd, 'kept')
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .filter((name) => readFileSync(join(folder, name), 'utf8').includes('\n'))
    .map((name) => name.slice(0, -'.jsonl'.length))
}

function copySession(cwd: string, from: string, to: string): void {
  const text = readFileSync(join(cwd, 'kept', `${from}.jsonl`), 'utf8')
  writeFileSync(join(cwd, 'kept', `${to}.jsonl`), text.replace(`"id":"${from}"`, `"id":"${to}"`))
}

interface Line {
  readonly type: string
  readonly header?: { readonly id: string; readonly parentSession?: string }
  readonly data?: { readonly code?: string; readonly reason?: string; readonly callId?: string }
}

function linesOf(cwd: string, id: string): Line[] {
  const text = readFileSync(join(cwd, 'kept', `${id}.jsonl`), 'utf8')
  // A kill may tear the last line.
  const whole = text.slice(0, text.lastIndexOf('\n'))
  return whole.split('\n').map((line) => JSON.parse(line) as Line)
}

/** The session without a parent, and those with one. */
function familyIn(cwd: string): { root: string; children: string[] } {
  const isRoot = (id: string): boolean => linesOf(cwd, id)[0]?.header?.parentSession === undefined
  const ids = idsIn(cwd)
  return { root: ids.find(isRoot) ?? '', children: ids.filter((id) => !isRoot(id)) }
}

/** What the list says of each session, by id. */
async function statesIn(cwd: string): Promise<Map<string, string>> {
  const { code, stdout, stderr } = await dsh(['sessions', '--root', 'kept'], { cwd })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const rows = stdout.trimEnd().split('\n').slice(1)
  return new Map(rows.map((row) => /([\w-]+) +([\w-]+)/.exec(row)?.slice(1) as [string, string]))
}

/** Starts the command and kills it when the world is as told. */
async function killed(cwd: string, prompt: string, isReady: () => boolean): Promise<void> {
  const command = startDsh(['dsh.yml', '-p', prompt], { cwd })
  await waitFor('it has come so far', () => isReady() || command.child.exitCode !== null)
  command.child.kill('SIGKILL')
  const { code, stderr } = await command.finished
  expect({ code, stderr }).toMatchObject({ code: null })
}

describe('--resume', () => {
  test('goes on with a session, over several processes', async () => {
    const cwd = await createProject()

    const first = await ask(cwd, 'one')
    const second = await ask(cwd, 'two', '--resume', first.sessionId)
    const third = await ask(cwd, 'three', '--resume', first.sessionId)

    expect([first, second, third].map(({ answer }) => answer)).toEqual([
      'turn 1: one',
      'turn 2: two',
      'turn 3: three',
    ])
    expect(new Set([first, second, third].map(({ sessionId }) => sessionId)).size).toBe(1)
    expect(idsIn(cwd)).toEqual([first.sessionId])
  })

  test('goes on with a child, below its parent', async () => {
    const cwd = await createProject()
    const { sessionId } = await ask(cwd, 'delegate say hello')
    const [child = ''] = familyIn(cwd).children

    const { answer } = await ask(cwd, 'and now?', '--resume', child)

    expect(answer).toBe('turn 2: and now?')
    expect(linesOf(cwd, child)[0]?.header).toMatchObject({
      parentSession: sessionId,
      delegationDepth: 1,
    })
  })

  test('works in the folder of the session, wherever the command is started', async () => {
    const cwd = await createProject()
    const { sessionId } = await ask(cwd, 'one')
    mkdirSync(join(cwd, 'elsewhere'))

    const finished = await dsh(['../dsh.yml', '-p', 'two', '--resume', sessionId], {
      cwd: join(cwd, 'elsewhere'),
    })

    expect(finished).toMatchObject({ code: 0, stdout: 'turn 2: two\n' })
    expect(linesOf(cwd, sessionId)[0]?.header).toMatchObject({ cwd })
  })

  test.each([
    [
      'unknown',
      /--resume: no session "unknown" in "(.*kept)": "dsh sessions --root \1" lists those that are there/,
    ],
    [
      '../../etc/passwd',
      /session id "..\/..\/etc\/passwd" must be of 1 to 128 letters, digits, "-" and "_"/,
    ],
  ])('of %j is refused', async (id, told) => {
    const cwd = await createProject()

    expect(refusal(await dsh(['dsh.yml', '-p', 'hi', '--resume', id], { cwd }))).toMatch(told)
  })

  test('takes the beginning of an id, and lists the sessions when several begin so', async () => {
    const cwd = await createProject()
    const { sessionId } = await ask(cwd, 'one')
    copySession(cwd, sessionId, `${sessionId}-copy`)
    copySession(cwd, sessionId, 'another')

    expect((await ask(cwd, 'two', '--resume', 'an')).answer).toBe('turn 2: two')
    expect((await ask(cwd, 'two', '--resume', sessionId)).answer).toBe('turn 2: two')
    const beginning = sessionId.slice(0, 8)
    const told = refusal(await dsh(['dsh.yml', '-p', 'hi', '--resume', beginning], { cwd }))

    expect(told.split('\n')).toEqual([
      `dsh: "${beginning}" begins several sessions, write more of the id:`,
      `  ${sessionId}`,
      `  ${sessionId}-copy`,
      '',
    ])
  })

  test('of a session that another process serves is refused, and names it', async () => {
    const cwd = await createProject()
    const { sessionId } = await ask(cwd, 'one')
    const other = startDsh(['dsh.yml', '--resume', sessionId], { cwd, isInteractive: true })
    await other.sees('model scripted')

    const told = refusal(await dsh(['dsh.yml', '-p', 'hi', '--resume', sessionId], { cwd }))

    expect(told).toContain(`is being written by process ${other.child.pid}`)
    expect(await other.leaves()).toBe(0)
    expect((await ask(cwd, 'two', '--resume', sessionId)).answer).toBe('turn 2: two')
  })
})

describe('a process that is killed', () => {
  test('in the middle of a delegation leaves sessions that go on', async () => {
    const cwd = await createProject()
    await killed(cwd, 'delegate wait', () => existsSync(join(cwd, 'waiting')))
    const { root, children } = familyIn(cwd)
    const [child = ''] = children
    expect(await statesIn(cwd)).toEqual(
      new Map([
        [root, 'interrupted'],
        [child, 'interrupted'],
      ]),
    )

    const { answer } = await ask(cwd, 'what now?', '--resume', root)
    const again = await ask(cwd, 'and now?', '--resume', root)

    expect([answer, again.answer]).toEqual(['turn 2: what now?', 'turn 3: and now?'])
    for (const [type, count] of [
      ['tool/call', 1],
      ['tool/result', 1],
      ['turn/end', 3],
    ] as const) {
      expect(linesOf(cwd, root).filter((line) => line.type === type)).toHaveLength(count)
    }
    expect(linesOf(cwd, root).find(({ type }) => type === 'tool/result')?.data).toMatchObject({
      isError: true,
      code: 'INTERRUPTED',
    })
    expect(await statesIn(cwd)).toEqual(
      new Map([
        [root, 'completed'],
        [child, 'interrupted'],
      ]),
    )
    expect((await ask(cwd, 'and you?', '--resume', child)).answer).toBe('turn 2: and you?')
    const calls = linesOf(cwd, child).filter(({ type }) => type.startsWith('tool/'))
    expect(calls.map(({ type, data }) => `${type} ${data?.code ?? ''}`.trim())).toEqual([
      'tool/call',
      'tool/result INTERRUPTED',
    ])
  })

  test('while a child waits for its first reply loses neither the child nor its task', async () => {
    const cwd = await createProject()
    await killed(cwd, 'delegate stall', () => idsIn(cwd).length === 2)
    const { root, children } = familyIn(cwd)
    const [child = ''] = children

    expect(await statesIn(cwd)).toEqual(
      new Map([
        [root, 'interrupted'],
        [child, 'interrupted'],
      ]),
    )
    const shown = await dsh(['sessions', 'show', child, '--root', 'kept'], { cwd })
    expect(shown.stdout).toContain(`child of ${root} by spawn, call `)
    expect(shown.stdout).toContain('user:\n  stall\nturn has not ended\n')
  })

  test.each([2, 5, 9, 20, 33])(
    'at any moment, here after %i sessions, leaves only what can be read and goes on',
    async (count) => {
      const cwd = await createProject()
      await killed(cwd, 'loop', () => idsIn(cwd).length >= count)

      const states = await statesIn(cwd)

      const { root, children } = familyIn(cwd)
      expect([...states.keys()].toSorted()).toEqual([root, ...children].toSorted())
      expect(states.get(root)).toBe('interrupted')
      expect([...states.values()]).not.toContain('running')
      expect((await ask(cwd, 'what now?', '--resume', root)).answer).toBe('turn 2: what now?')
      const results = linesOf(cwd, root).flatMap(({ type, data }) =>
        type === 'tool/result' ? [data?.callId] : [],
      )
      const calls = linesOf(cwd, root).flatMap(({ type, data }) =>
        type === 'tool/call' ? [data?.callId] : [],
      )
      expect(results).toEqual(calls)
    },
  )
})

describe('dsh sessions', () => {
  test('lists parents and children with state, age, tokens and title', async () => {
    const cwd = await createProject()
    const { sessionId } = await ask(cwd, 'delegate say hello')
    const [child = ''] = familyIn(cwd).children

    const { stdout } = await dsh(['sessions', '--root', 'kept'], { cwd })

    const lines = stdout.replace(/\d+s /g, 'AGE').split('\n')
    expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
      ['SESSION', 'STATE', 'AGE', 'TOKENS', 'TITLE'],
      [
        sessionId,
        'completed',
        expect.stringMatching('AGE') as string,
        '1.0k',
        'delegate say hello',
      ],
      [
        `└─ ${child}`,
        'completed',
        expect.stringMatching('AGE') as string,
        '1.0k',
        '[spawn] a task',
      ],
      [''],
    ])
  })

  test('prints nothing of a file that drives a terminal', async () => {
    const cwd = await createProject()
    const { sessionId } = await ask(cwd, 'hello')
    const file = join(cwd, 'kept', `${sessionId}.jsonl`)
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replaceAll('"reason":"completed"', '"reason":"\\u001b]0;mine\\u0007"'))
    writeFileSync(join(cwd, 'kept', '\u001b[31mred.jsonl'), 'no session\n')

    const { stdout, stderr } = await dsh(['sessions', '--root', 'kept'], { cwd })

    expect(stdout).toContain(sessionId)
    expect(stderr).toContain('session id "red"')
    expect(`${stdout}${stderr}`).not.toContain('\u001b')
    expect(`${stdout}${stderr}`).not.toContain('\u0007')
  })

  test('shows who runs while it does', async () => {
    const cwd = await createProject()
    const command = startDsh(['dsh.yml', '-p', 'delegate wait'], { cwd })
    await waitFor('the child works', () => existsSync(join(cwd, 'waiting')))

    expect([...(await statesIn(cwd)).values()]).toEqual(['running', 'running'])

    command.child.kill('SIGTERM')
    await command.finished
    expect([...(await statesIn(cwd)).values()]).toEqual(['aborted', 'aborted'])
  })

  test('prints a transcript', async () => {
    const cwd = await createProject()
    const { sessionId } = await ask(cwd, 'hello')

    const { code, stdout, stderr } = await dsh(['sessions', 'show', sessionId, '--root', 'kept'], {
      cwd,
    })

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.replace(/\d{4}-\S+Z/g, 'TIME')).toBe(
      `session ${sessionId}
created TIME in ${cwd}

--- turn 1, scripted, TIME ---
user:
  hello
assistant:
  turn 1: hello
turn ended: completed
`,
    )
  })

  test('prints the transcript of the only session whose id begins so', async () => {
    const cwd = await createProject()
    const { sessionId } = await ask(cwd, 'hello')
    copySession(cwd, sessionId, 'x-1')
    copySession(cwd, sessionId, 'x-2')

    const begun = await dsh(['sessions', 'show', sessionId.slice(0, 8), '--root', 'kept'], { cwd })
    const several = await dsh(['sessions', 'show', 'x', '--root', 'kept'], { cwd })
    const none = await dsh(['sessions', 'show', 'nope', '--root', 'kept'], { cwd })

    expect(begun.stdout).toContain(`session ${sessionId}\n`)
    expect(refusal(several)).toBe(
      'dsh: "x" begins several sessions, write more of the id:\n  x-1\n  x-2\n',
    )
    expect(refusal(none)).toMatch(/: "dsh sessions --root .*kept" lists those that are there\n$/)
  })

  test('looks into the state folder when no other is given', async () => {
    const cwd = await createProject()
    const { sessionId } = await ask(cwd, 'hello')
    const state = { cwd, env: { XDG_STATE_HOME: join(cwd, 'state') } }

    expect((await dsh(['sessions'], state)).stdout).toBe(
      `no sessions in ${join(cwd, 'state', 'dsh', 'sessions')}: --root DIR names another folder\n`,
    )

    mkdirSync(join(cwd, 'state', 'dsh'), { recursive: true })
    renameSync(join(cwd, 'kept'), join(cwd, 'state', 'dsh', 'sessions'))
    expect((await dsh(['sessions'], state)).stdout).toContain(sessionId)
    expect((await dsh(['sessions', 'show', sessionId], state)).stdout).toContain('turn 1: hello')
  })

  test('lists what it can read and tells the rest on stderr', async () => {
    const cwd = await project({ 'kept/broken.jsonl': 'nonsense\n' })

    const { code, stdout, stderr } = await dsh(['sessions', '--root', 'kept'], { cwd })

    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `no sessions in ${join(cwd, 'kept')}: --root DIR names another folder\n`,
    })
    expect(stderr).toBe(
      `dsh: ${join(cwd, 'kept', 'broken.jsonl')}:1: the session cannot be read: it is not JSON; nothing was changed\n`,
    )
  })

  test.each([
    [['show'], "missing required argument 'id'"],
    [['shwo'], 'too many arguments'],
    [['--rot', 'x'], "unknown option '--rot'"],
    [['--root', 'nowhere'], '--root "nowhere" does not exist: give a folder'],
    [['show', 'unknown', '--root', '.'], 'no session "unknown" in '],
    [['--root', '.', 'show', '../x'], 'session id "../x" must be of 1 to 128 letters'],
  ])('with %j is refused', async (args, told) => {
    const cwd = await project()

    expect(refusal(await dsh(['sessions', ...args], { cwd }))).toContain(`dsh: ${told}`)
  })

  test('has help of its own', async () => {
    const cwd = await project()

    const help = await dsh(['sessions', '--help'], { cwd })

    expect(help).toMatchObject({ code: 0, stderr: '' } satisfies Partial<Finished>)
    expect(help.stdout).toContain('dsh sessions')
    expect(help.stdout).toContain('show')
    expect((await dsh(['--help'], { cwd })).stdout).toContain('dsh sessions show <id>')
  })
})
