/** Runs a real agent as its section of the guide says, on models that are scripted. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Agent } from '@deepseek-ai/dsh-agent'
import {
  bootYml,
  type ReceivedRequest,
  type ServedCall,
  type ServedReply,
  startModelServer,
  temporaryFolder,
  waitFor,
} from '@deepseek-ai/dsh-testkit'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { isAlive } from '../helpers.ts'
import { blockOf, sectionOf } from './guide.ts'

/** What the agent is given as its secret. */
export const key = 'key-of-the-child'
const run = promisify(execFile)
const cache = fileURLToPath(
  new URL('../../../../../node_modules/.cache/dsh-agents', import.meta.url),
)

/** What a test has to know of an agent; all else stands in the guide. */
export interface Recipe {
  /** Heading of its section in the guide. */
  readonly section: string
  /** Of npm, with its exact version. */
  readonly spec: string
  /** Where the command is, within the installation. */
  readonly bin: string
  /** Variables that lead it to the scripted model. */
  readonly env: (url: string) => Readonly<Record<string, string>>
  /** Its call that reads a file, without asking; absent where it needs more than the agent. */
  readonly read?: (path: string) => ServedCall
  /** Its call that writes a file; it asks before. */
  readonly write: (path: string, text: string) => ServedCall
  /** Its call that runs a command; it asks before. */
  readonly shell: (command: string) => ServedCall
  /** What the parent is told when the write was refused. */
  readonly refused: RegExp
}

/** The tests that every recipe passes. */
export function describeRecipe(recipe: Recipe): void {
  vi.setConfig({ testTimeout: 120_000 })
  let bin: string
  beforeAll(async () => {
    bin = join(await installed(recipe.spec), recipe.bin)
  }, 600_000)

  describe(`${recipe.section}, by the yml of the guide`, () => {
    test('answers the tool call of a parent', async () => {
      const { delegate } = await createScene(recipe, bin)

      const { end, result } = await delegate(() => 'It is 42.')

      expect(end).toEqual({ reason: 'completed' })
      expect(result).toContain('It is 42.')
    })

    test.skipIf(recipe.read === undefined)('reads a file, under reject', async () => {
      const { delegate, work } = await createScene(recipe, bin)
      const file = join(work, 'note.txt')
      await writeFile(file, 'the note')

      const { result } = await delegate(({ messages, body }) => {
        if (messages.at(-1)?.role !== 'tool') return callOf(recipe.read?.(file))
        return JSON.stringify(body).includes('the note') ? 'I have read it.' : 'I see nothing.'
      })

      expect(result).toContain('I have read it.')
    })

    test('is refused what it asks for, under reject, and tells the parent', async () => {
      const { delegate, work } = await createScene(recipe, bin)
      const file = join(work, 'made.txt')

      const { end, result } = await delegate(({ messages }) => {
        const { role, text = '' } = messages.at(-1) ?? {}
        return role === 'tool' ? `I heard: ${text}` : callOf(recipe.write(file, 'hello'))
      })

      expect(end).toEqual({ reason: 'completed' })
      expect(result).toMatch(recipe.refused)
      expect(existsSync(file)).toBe(false)
    })

    test('writes a file, under allow', async () => {
      const { delegate, work } = await createScene(recipe, bin, 'allow')
      const file = join(work, 'made.txt')

      const { result } = await delegate(({ messages }) =>
        messages.at(-1)?.role === 'tool' ? 'I made it.' : callOf(recipe.write(file, 'hello')),
      )

      expect(result).toContain('I made it.')
      expect((await readFile(file, 'utf8')).trim()).toBe('hello')
    })

    test('is cancelled together with the command that it runs', async () => {
      const { delegate, cancel, work } = await createScene(recipe, bin, 'allow')
      const file = join(work, 'pid')
      const command = `echo $$ > ${file}; exec sleep 300`

      const delegation = delegate(() => callOf(recipe.shell(command)))
      await waitFor('the command runs', () => /\n/.test(textIn(file)), 60_000)
      cancel()
      const { end, elapsedMs } = await delegation

      expect(end).toMatchObject({ reason: 'aborted' })
      expect(elapsedMs).toBeLessThan(15_000)
      expect(isAlive(Number(textIn(file)))).toBe(false)
    })

    test('is cancelled while its model says nothing', async () => {
      const { delegate, cancel } = await createScene(recipe, bin)
      const silent = Promise.withResolvers<void>()

      const delegation = delegate(() => {
        silent.resolve()
        return { fault: { kind: 'stall', after: 'headers' } }
      })
      await silent.promise
      cancel()
      const { end, elapsedMs } = await delegation

      expect(end).toMatchObject({ reason: 'aborted' })
      expect(elapsedMs).toBeLessThan(15_000)
    })
  })
}

type Script = (request: ReceivedRequest) => string | ServedReply

interface Delegated {
  readonly end: Awaited<ReturnType<Agent['send']>>
  /** What the tool gave to the parent; empty when the turn ended before. */
  readonly result: string
  /** From the cancel, else from the start, until the agent's last process was gone. */
  readonly elapsedMs: number
}

interface Scene {
  /** Where parent and child work. */
  readonly work: string
  /** Has the parent call the tool once; the script speaks for the agent's model. */
  readonly delegate: (script: Script) => Promise<Delegated>
  /** Cancels the parent, and with it the delegation. */
  readonly cancel: () => void
}

/** Boots the host and the agent's entries, as the guide has them, around a home that is empty. */
async function createScene(
  recipe: Recipe,
  bin: string,
  permission: 'reject' | 'allow' = 'reject',
): Promise<Scene> {
  const [home, work, scratch] = await Promise.all([
    temporaryFolder(),
    temporaryFolder(),
    temporaryFolder(),
  ])
  const entries = blockOf(recipe.section, 'yaml')
  const toolName = /toolName: (\w+)/.exec(entries)?.[1] ?? ''
  let script: Script | undefined
  let result = ''
  const model = await startModelServer((request) => {
    if (!request.tools.includes(toolName)) {
      // Agents also ask for the title of a session, and offer no tools then.
      return request.tools.length === 0 ? 'A title' : (script?.(request) ?? '')
    }
    const { role, text = '' } = request.messages.at(-1) ?? {}
    if (role !== 'tool') {
      return callOf({ name: toolName, input: { description: 'a task', prompt: 'Do it.' } })
    }
    result = text
    return 'done'
  })
  stubEnvironment({
    ...recipe.env(model.url),
    DEEPSEEK_API_KEY: 'parent-key',
    DEEPSEEK_BASE_URL: model.baseURL,
    HOME: home,
    TMPDIR: scratch,
    PATH: [dirname(process.execPath), bin, '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
    DSH_TEST_MARK: home,
  })
  const policy = `permission: ${permission}`
  const ctx = await bootYml(
    `${blockOf('The host', 'yaml')}${entries.replace(/permission: \w+/, policy)}`,
  )
  const { agent: parent } = ctx.agents.create({ cwd: work })
  let begin = performance.now()
  return {
    work,
    cancel: () => {
      begin = performance.now()
      parent.cancel()
    },
    delegate: async (told) => {
      script = told
      const end = await parent.send('Delegate the task.')
      const rest = processesWith(home)
      // A turn that is cancelled ends at once, its children soon after.
      expect(end.reason === 'completed' ? rest : []).toEqual([])
      await waitFor('all processes are gone', () => processesWith(home).length === 0, 20_000)
      const elapsedMs = performance.now() - begin
      expect(namedTraces(recipe)).toEqual(expect.arrayContaining(await readdir(home)))
      expect(await filesWith(key, home)).toEqual([])
      expect(['made.txt', 'note.txt', 'pid']).toEqual(expect.arrayContaining(await readdir(work)))
      return { end, result, elapsedMs }
    },
  }
}

function callOf(call: ServedCall | undefined): ServedReply {
  return { calls: call === undefined ? [] : [call] }
}

/** Gives variables to this process; those that would lead an agent elsewhere are taken away. */
function stubEnvironment(env: Readonly<Record<string, string>>): void {
  const foreign =
    /^(?:IS_SANDBOX$|(?:ANTHROPIC|CLAUDE|CODEX|DEEPSEEK|GEMINI|GOOGLE|OPENAI|OPENCODE|QWEN|XDG)_)/
  onTestFinished(() => void vi.unstubAllEnvs())
  for (const name of Object.keys(process.env)) if (foreign.test(name)) vi.stubEnv(name, undefined)
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
}

/** What the agent leaves in its home, as the guide has it. */
function namedTraces({ section }: Recipe): (string | undefined)[] {
  const line = /^\| leaves behind .*$/m.exec(sectionOf(section))?.[0] ?? ''
  return Array.from(line.matchAll(/`~\/([^/`]+)/g), ([, name]) => name)
}

/** The files below a folder that hold a text. */
async function filesWith(text: string, folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => textIn(file).includes(text))
}

/** The command lines of all processes that have inherited a mark. */
function processesWith(mark: string): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids
    .filter((pid) => textIn(`/proc/${pid}/environ`).includes(mark))
    .map((pid) => `${pid} ${textIn(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')}`)
}

/** What a file holds; nothing when it is gone, or not ours to read. */
function textIn(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // No file is an empty one here.
    return ''
  }
}

/** Installs a package once, without its scripts. @returns its folder. */
async function installed(spec: string): Promise<string> {
  const folder = join(cache, spec.replaceAll('/', '+'))
  if (existsSync(folder)) return folder
  const fresh = `${folder}.${process.pid}`
  await rm(fresh, { recursive: true, force: true })
  await mkdir(fresh, { recursive: true })
  await writeFile(join(fresh, 'package.json'), '{ "private": true }\n')
  const args = ['install', '--prefix', fresh, '--no-audit', '--no-fund', '--ignore-scripts', spec]
  await run('npm', args, { cwd: fresh })
  await rename(fresh, folder)
  return folder
}
