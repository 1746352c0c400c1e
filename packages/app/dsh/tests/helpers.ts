/** Starts the real command in a temporary project. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryProject, waitFor } from '@deepseek-ai/dsh-testkit'
import { onTestFinished, vi } from 'vitest'

export const bin = fileURLToPath(new URL('../src/bin.ts', import.meta.url))

// Processes take their time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A command that runs; it is killed after the test if it still does. */
export interface Command {
  readonly child: ChildProcess
  readonly stdout: string
  readonly stderr: string
  /** Writes a line to stdin. */
  say(line: string): void
  /** Ends stdin and gives the exit code. */
  leaves(): Promise<number | null>
  /** Waits for the text in the output. */
  sees(text: string | RegExp): Promise<void>
  /** Says it, again and again, until the answer is there: files tell of a change in their own time. */
  until(line: string, answer: string): Promise<void>
  readonly finished: Promise<Finished>
}

export interface StartOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** Whether stdin stays open; else it is empty. */
  readonly isInteractive?: boolean
}

export function startDsh(args: readonly string[], options: StartOptions): Command {
  const { NO_COLOR: _, FORCE_COLOR: __, DSH_DEBUG: ___, ...ambient } = process.env
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: options.cwd,
    env: { ...ambient, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  // A command that has gone does not read what is said to it.
  child.stdin.on('error', () => {})
  const finished = once(child, 'close').then(([code]): Finished => ({ code, ...output }))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await finished
  })
  if (options.isInteractive !== true) child.stdin.end()
  const all = (): string => `${output.stdout}\n${output.stderr}`
  const sees = async (text: string | RegExp): Promise<void> => {
    const isThere = (): boolean =>
      typeof text === 'string' ? all().includes(text) : text.test(all())
    await waitFor(`the output shows ${text}`, isThere).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${all()}`)
    })
  }
  const say = (line: string): void => void child.stdin.write(`${line}\n`)
  return {
    child,
    get stdout() {
      return output.stdout
    },
    get stderr() {
      return output.stderr
    },
    say,
    leaves: async () => {
      child.stdin.end()
      return (await finished).code
    },
    sees,
    until: async (line, answer) => {
      for (let tries = 0; tries < 50 && !all().includes(answer); tries += 1) {
        const { length } = all()
        say(line)
        await waitFor('there is an answer', () => all().length > length)
      }
      await sees(answer)
    },
    finished,
  }
}

/** Runs the command to its end. */
export function dsh(args: readonly string[], options: StartOptions): Promise<Finished> {
  return startDsh(args, options).finished
}

/** A temporary project with files in folders, the scripted model and the terminal. */
export async function project(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await temporaryProject()
  for (const [name, text] of Object.entries({ 'model.ts': model, ...files })) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  return folder
}

/** Entries of a configuration that answers. */
export const working = `
- name: '@deepseek-ai/dsh-agent-core'
- name: ./model.ts
- name: '@deepseek-ai/dsh-ui-terminal'
`

/** What a refusal says. @throws unless it is one: exit code 2, nothing on stdout, no stack trace. */
export function refusal({ code, stdout, stderr }: Finished): string {
  assert.deepEqual({ code, stdout }, { code: 2, stdout: '' }, stderr)
  assert.doesNotMatch(stderr, /^ {4}at /m)
  return stderr
}

/** The prompt that makes the model of the project delegate. */
export function delegate(prompt: string, description = 'a task'): string {
  return `call subagent ${JSON.stringify({ description, prompt })}`
}

/** A model that does as it is told: `call NAME JSON`, `fail`, `hang`, or else it repeats the prompt. */
export const model = `
import { setTimeout as delay } from 'node:timers/promises'
export const name = 'model'
export const inject = ['llm']
export function apply(ctx) {
  ctx.llm.registerAdapter({ name: 'model', models: [{ name: 'parrot' }], stream })
}
const usage = { type: 'usage', usage: { inputTokens: 10, outputTokens: 5 } }
async function* stream({ messages, signal }) {
  const last = messages.at(-1).content.map((block) => block.text ?? block.content?.[0]?.text).join()
  if (messages.at(-1).role === 'user') {
    const calls = last.split(';').map((part) => part.trim()).filter((part) => part.startsWith('call '))
    if (last === 'fail') throw new Error('the model is broken')
    if (last === 'hang') {
      yield { type: 'text-delta', text: 'I begin' }
      await delay(60_000, undefined, { signal })
    }
    if (calls.length > 0) {
      yield { type: 'text-delta', text: 'let me see' }
      for (const [index, call] of calls.entries()) {
        const [, name, input] = /^call (\\S+) ?(.*)$/.exec(call)
        yield { type: 'tool-call', callId: 'c' + index, name, input: JSON.parse(input || '{}') }
      }
      yield usage
      yield { type: 'finish', reason: 'tool-calls' }
      return
    }
  }
  yield { type: 'text-delta', text: 'you said: ' }
  yield { type: 'text-delta', text: last }
  yield usage
  yield { type: 'finish', reason: 'stop' }
}
`
