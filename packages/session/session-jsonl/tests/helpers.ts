/** What the specs of this package share. */
import fs, { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent, CreateAgentOptions } from '@deepseek-ai/dsh-agent'
import { violationsOf } from '@deepseek-ai/dsh-invariants'
import {
  Session,
  type SessionEvent,
  type SessionHeader,
  type SessionId,
  type SessionPrefix,
} from '@deepseek-ai/dsh-session'
import {
  bootYml,
  collectWarnings,
  type ScriptedModel,
  scriptedModel,
  temporaryFolder,
  type TestContextOptions,
} from '@deepseek-ai/dsh-testkit'
import type { Tool } from '@deepseek-ai/dsh-tools'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { eventLine, headerLine } from '../src/format.ts'

export const idOf = (text: string): SessionId => text as SessionId

export function createHeader(overrides: Partial<SessionHeader> = {}): SessionHeader {
  return { id: idOf('one'), createdAt: 1000, cwd: '/', delegationDepth: 0, ...overrides }
}

export function createSession(
  overrides: Partial<SessionHeader> = {},
  seed?: SessionPrefix,
  own: readonly SessionEvent[] = [],
): Session {
  return new Session(createHeader(overrides), () => {}, seed, own)
}

const usage = { inputTokens: 10, outputTokens: 5 }

/** Appends a whole turn, or only what comes before its end. */
export function appendTurn(session: Session, text = 'hello', isOpen = false): void {
  session.append('turn/start', { turn: session.turnCount + 1, model: 'model' })
  session.append('user/message', { content: [{ type: 'text', text }] })
  session.append('step/start', { step: 1 })
  const content = [{ type: 'text' as const, text: `re: ${text}` }]
  session.append('assistant/message', { content, model: 'model', usage, finish: 'stop' })
  session.append('step/end', { step: 1 })
  if (!isOpen) session.append('turn/end', { reason: 'completed' })
}

/** The lines of a session file as values; the file must end with a whole line. */
export function linesOf(file: string): Record<string, unknown>[] {
  const text = readFileSync(file, 'utf8')
  expect(text.endsWith('\n')).toBe(true)
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** The types of the events in a session file. */
export function typesIn(file: string): unknown[] {
  return linesOf(file)
    .slice(1)
    .map(({ type }) => type)
}

export interface HostOptions extends TestContextOptions {
  /** Default: a new folder. */
  readonly root?: string
  /** More entries. */
  readonly yml?: string
  /** Whether the store is left out, to be loaded by the test. */
  readonly isVolatile?: boolean
}

export interface Host {
  readonly ctx: Context
  readonly model: ScriptedModel
  readonly root: string
  readonly warnings: readonly string[]
  readonly createAgent: (options?: Partial<CreateAgentOptions>) => Agent
  /** The path of a session's file. */
  readonly fileOf: (agent: { readonly id: SessionId }) => string
}

/**
 * A context with the whole core, both in-process backends and the store, loaded from a yml. When
 * the test ends, every log must be sound and no lock may be left.
 */
export async function createHost(
  script: Parameters<typeof scriptedModel>[0] = () => 'hello',
  { root: given, yml = '', isVolatile = false, ...options }: HostOptions = {},
): Promise<Host> {
  const root = given ?? join(await temporaryFolder(), 'sessions')
  const sessions = new Set<Session>()
  onTestFinished(() => {
    for (const session of sessions) expect(violationsOf(session.events())).toEqual([])
    // Of hosts that share a folder, the first ends last.
    if (given === undefined) expect(namesIn(root).filter(isLock)).toEqual([])
  })
  const ctx = await bootYml(hostYml(isVolatile ? '' : storeYml(root), yml), options)
  ctx.on('session/created', ({ session }) => void sessions.add(session))
  const model = scriptedModel(script)
  ctx.llm.registerAdapter(model)
  return {
    ctx,
    model,
    root,
    warnings: collectWarnings(ctx),
    createAgent: (overrides) =>
      ctx.agents.create({ cwd: '/', options: { model: 'scripted' }, ...overrides }).agent,
    fileOf: ({ id }) => join(root, `${id}.jsonl`),
  }
}

const isLock = (name: string): boolean => name.includes('.lock')

export function storeYml(root: string): string {
  return `- id: store
  name: '@deepseek-ai/dsh-session-jsonl'
  config: ${JSON.stringify({ root })}
`
}

function hostYml(store: string, more: string): string {
  return `
${store}
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
  config: { maxConcurrent: 32, maxConcurrentPerParent: 32 }
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-subagent-fork'
${more}
`
}

/** The entry of the store, to reload or remove it. */
export function storeEntry(ctx: Context) {
  const entry = [...ctx.loader.entries()].find(
    ({ options }) => options.name === '@deepseek-ai/dsh-session-jsonl',
  )
  if (entry === undefined) throw new Error('the store is not loaded')
  return entry
}

/** The names in a folder but for what the locks of all its files are links to. */
export function namesIn(root: string): string[] {
  try {
    return readdirSync(root)
      .filter((name) => name !== '.writers')
      .toSorted()
  } catch {
    return []
  }
}

export function registerTool(
  ctx: Context,
  name: string,
  execute: Tool['execute'] = async () => `${name} is done`,
  overrides: Partial<Tool> = {},
): void {
  const parameters = z.looseObject({})
  ctx.tools.register({ name, description: name, parameters, execute, ...overrides })
}

/** A tool `delegate` whose input is `{ provider, prompt }`; it answers with the child's text. */
export function registerDelegate(ctx: Context): void {
  ctx.tools.register({
    name: 'delegate',
    description: 'delegates',
    parameters: z.object({ provider: z.string(), prompt: z.string() }),
    parallel: true,
    execute: async ({ provider, prompt }, { agent, callId, signal }) => {
      const parent = ctx.agents.get(agent.id)
      if (parent === undefined) throw new Error('no such agent')
      const run = ctx.subagents.start(provider, { prompt, parent, callId, signal })
      try {
        const { stopReason, output } = await run.result
        const text = output.map((block) => (block.type === 'text' ? block.text : '')).join('')
        return `${stopReason}: ${text}`
      } finally {
        await run.dispose()
      }
    },
  })
}

/** The live sessions but this one. */
export function childrenOf(ctx: Context, parent: Agent): Session[] {
  return ctx.sessions.list().filter(({ header }) => header.parentSession === parent.id)
}

/** Sizes of the writes into session files; `fail` may cut one short or throw. */
export function watchWrites(fail?: (call: number, length: number) => number): number[] {
  const { writeSync } = fs
  const writes: number[] = []
  fs.writeSync = ((fd: number, bytes: Buffer, offset: number, length: number, at: unknown) => {
    // Locks are written without a position.
    if (typeof at !== 'number') return writeSync(fd, bytes, offset, length)
    writes.push(length)
    const allowed = fail?.(writes.length, length) ?? length
    return writeSync(fd, bytes, offset, allowed, at)
  }) as typeof writeSync
  syncBuiltinESMExports()
  onTestFinished(() => {
    fs.writeSync = writeSync
    syncBuiltinESMExports()
  })
  return writes
}

/** Counts the bytes that file handles read from here on. */
export function watchReads(): () => number {
  const { open } = promises
  let bytes = 0
  promises.open = async (...args) => {
    const handle = await open(...args)
    const read = handle.read.bind(handle) as (...rest: unknown[]) => Promise<{ bytesRead: number }>
    const counted = async (...rest: unknown[]): Promise<{ bytesRead: number }> => {
      const result = await read(...rest)
      bytes += result.bytesRead
      return result
    }
    return Object.assign(handle, { read: counted as typeof handle.read })
  }
  syncBuiltinESMExports()
  onTestFinished(() => {
    promises.open = open
    syncBuiltinESMExports()
  })
  return () => bytes
}

/** The names of the calls that the file system gets from here on. */
export function watchCalls(): string[] {
  const calls: string[] = []
  const originals = Object.fromEntries(
    Object.entries(fs).filter(([name]) => name.endsWith('Sync')),
  ) as Record<string, (...args: unknown[]) => unknown>
  for (const [name, original] of Object.entries(originals)) {
    const watched = (...args: unknown[]): unknown => {
      calls.push(name)
      return original(...args)
    }
    Object.assign(fs, { [name]: watched })
  }
  syncBuiltinESMExports()
  onTestFinished(() => {
    Object.assign(fs, originals)
    syncBuiltinESMExports()
  })
  return calls
}

/** Makes a call on session files fail, until the test ends; what is closed is closed all the same. */
export function failing(call: 'ftruncateSync' | 'closeSync', message: string): void {
  const { ftruncateSync, closeSync } = fs
  fs[call] = (descriptor: number): void => {
    const isSession = readlinkSync(`/proc/self/fd/${descriptor}`).endsWith('.jsonl')
    if (call === 'closeSync') closeSync(descriptor)
    if (isSession) throw new Error(message)
  }
  syncBuiltinESMExports()
  onTestFinished(() => {
    Object.assign(fs, { ftruncateSync, closeSync })
    syncBuiltinESMExports()
  })
}

/** The descriptors of this process that are open. */
export function openFiles(): string[] {
  return readdirSync('/proc/self/fd').toSorted()
}

/** Appends the beginning of a turn whose message calls `work` once per id; `logged` of them began. */
export function appendOpenCalls(
  session: Session,
  callIds: readonly string[],
  logged: number,
): void {
  session.append('turn/start', { turn: session.turnCount + 1, model: 'scripted' })
  session.append('user/message', { content: [{ type: 'text', text: 'go' }] })
  session.append('step/start', { step: 1 })
  const content = callIds.map((callId) => ({
    type: 'tool-call' as const,
    callId,
    name: 'work',
    input: {},
  }))
  session.append('assistant/message', { content, model: 'scripted', usage, finish: 'tool-calls' })
  for (const callId of callIds.slice(0, logged)) {
    session.append('tool/call', { callId, name: 'work', input: {} })
  }
}

/** Puts a session into a folder, as a process leaves it that is killed. */
export function leaveBehind(root: string, session: Session): string {
  const own = Array.from(session.events(session.header.seedLength), eventLine)
  const file = join(root, `${session.id}.jsonl`)
  mkdirSync(root, { recursive: true })
  writeFileSync(file, headerLine(session.header) + own.join(''))
  return file
}
