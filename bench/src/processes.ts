/** What is measured from outside: starts of the built command, and agents behind the Agent Client Protocol. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import * as acp from '@deepseek-ai/dsh-subagent-acp'
import { withHarness } from './in-process.ts'
import { median, type Sample } from './measure.ts'

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))

/** The command as it is published, with the yml. */
const built = (yml: string): string[] => [
  '--conditions=built',
  path('../../packages/app/dsh/lib/bin.js'),
  path(yml),
]
const codingAgent = built('../compositions/coding-agent.yml')
const ownAgent = built('../compositions/acp-agent.yml')
const plainAgent = [path('plain-agent.ts')]
/** More than the pool waits and an agent takes to be ready. */
const refillWaitMs = 1000

/** What every composition needs: Node, cordis and its Loader. */
const loaderAlone = [
  '--input-type=module',
  '--eval',
  `import { enableCompileCache } from 'node:module'
enableCompileCache()
const { Context } = await import('@deepseek-ai/cordis')
const { Loader } = await import('@deepseek-ai/cordis-plugin-loader')
await new Context().plugin(Loader)
console.log('ready')`,
]

/** A process under measurement. */
interface Child {
  readonly stdin: Writable
  /** The next text on stdout, or stderr. @throws Error when the process ends without one. */
  readonly said: () => Promise<string>
  readonly exited: Promise<number | null>
}

/** Lets `use` work with a process, which is gone when this settles. */
async function withChild<T>(
  args: readonly string[],
  use: (child: Child) => Promise<T>,
): Promise<T> {
  const child = spawn(process.execPath, args, { cwd: path('..') })
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  let errors = ''
  child.stderr.on('data', (text: Buffer) => (errors = `${errors}${text.toString()}`.slice(-2000)))
  const ended = async (): Promise<never> => {
    throw new Error(`node ${args.join(' ')} ended with ${await exited}: ${errors}`)
  }
  const said = async (): Promise<string> => {
    const texts = [once(child.stdout, 'data'), once(child.stderr, 'data')]
    return String((await Promise.race([...texts, ended()]))[0])
  }
  child.stdout.resume()
  // One that is gone shows as its exit.
  child.stdin.on('error', () => {})
  try {
    return await use({ stdin: child.stdin, said, exited })
  } finally {
    child.kill('SIGKILL')
    await exited
  }
}

/** Ms from the spawn to the first text: an interactive command tells on stderr that it is ready. */
function untilReady(args: readonly string[]): Promise<number> {
  const begin = performance.now()
  return withChild(args, async ({ said, stdin, exited }) => {
    await said()
    const time = performance.now() - begin
    stdin.end()
    await exited
    return time
  })
}

/** A time in starts of bare Node, which say of a machine what counts here; the parts in ms. */
async function inStarts(ms: number, parts: Readonly<Record<string, number>> = {}): Promise<Sample> {
  const node = await untilReady(['--eval', 'console.log()'])
  return { value: ms / node, parts: { 'in ms': ms, 'bare Node': node, ...parts } }
}

/** From the start of the process to its prompt; the part that is ours is what Node and the Loader do not take. */
export async function ready(): Promise<Sample> {
  await untilReady(codingAgent)
  await untilReady(loaderAlone)
  const withLoader = await untilReady(loaderAlone)
  const value = await untilReady(codingAgent)
  return inStarts(value, { 'Node and the Loader': withLoader, ours: value - withLoader })
}

/** From the start of the process to its exit, with one delegation. */
export async function oneShot(): Promise<Sample> {
  let value = 0
  for (let round = 0; round < 2; round += 1) {
    const begin = performance.now()
    const code = await withChild([...codingAgent, '-p', 'delegate'], ({ stdin, exited }) => {
      stdin.end()
      return exited
    })
    if (code !== 0) throw new Error(`the command ended with ${code}`)
    value = performance.now() - begin
  }
  return inStarts(value)
}

/** Our own ACP agent, from the spawn to its answer, and where the time goes. */
export async function ownAcpAgent(): Promise<Sample> {
  await converse(ownAgent)
  const parts = await converse(ownAgent)
  const { dispose: _, ...toAnswer } = parts
  return inStarts(sum(toAnswer), parts)
}

/** What the backend adds to the least that a client does, with an agent that does next to nothing. */
export async function acpOverhead(): Promise<Sample> {
  return withHarness({}, async (harness) => {
    const { ctx } = harness
    await ctx.plugin(acp, { command: process.execPath, args: plainAgent })
    const { agent, dispose } = harness.parent()
    const bare: number[] = []
    const ours: { start: number; result: number; dispose: number }[] = []
    for (let round = 0; round < 10; round += 1) {
      const { dispose: _, ...toAnswer } = await converse(plainAgent)
      bare.push(sum(toAnswer))
      const note = stopwatch()
      const run = ctx.subagents.start('acp', { prompt: 'go', parent: agent })
      const begun = note()
      const { stopReason, diagnostic } = await run.result
      if (stopReason !== 'completed') throw new Error(diagnostic)
      const result = note()
      await run.dispose()
      ours.push({ start: begun, result, dispose: note() })
    }
    await dispose()
    const least = Math.min(...bare.slice(2))
    const [best] = ours.slice(2).toSorted((a, b) => a.start + a.result - b.start - b.result)
    if (best === undefined) throw new Error('nothing was measured')
    return inStarts(best.start + best.result - least, { 'bare client': least, ...best })
  })
}

/** From the start of a run to its answer, by an agent whose process and handshake are ready. */
export async function acpWarm(): Promise<Sample> {
  return withHarness({}, async (harness) => {
    const { ctx } = harness
    const pool = { warm: 1, idleMs: 60_000 }
    await ctx.plugin(acp, { command: process.execPath, args: plainAgent, pool })
    const { agent, dispose } = harness.parent()
    const times: number[] = []
    for (let round = 0; round < 6; round += 1) {
      const note = stopwatch()
      const run = ctx.subagents.start('acp', { prompt: 'go', parent: agent })
      const { stopReason, diagnostic } = await run.result
      times.push(note())
      if (stopReason !== 'completed') throw new Error(diagnostic)
      await run.dispose()
      // Nothing tells when the next one is ready.
      await delay(refillWaitMs)
    }
    await dispose()
    const [cold = Number.NaN, ...warm] = times
    return inStarts(median(warm), { 'without one ready': cold })
  })
}

/** The least that any client does, in ms by phase. */
function converse(args: readonly string[]): Promise<Record<string, number>> {
  const note = stopwatch()
  return withChild(args, async (child) => {
    const phases: Record<string, number> = { spawn: note() }
    const cwd = path('..')
    const first = await ask(child, 0, 'initialize', { protocolVersion: 1, clientCapabilities: {} })
    phases['handshake'] = note()
    if (!first.includes('protocolVersion')) throw new Error(first)
    const session = await ask(child, 1, 'session/new', { cwd, mcpServers: [] })
    const sessionId = /"sessionId":"(.*?)"/.exec(session)?.[1]
    phases['session'] = note()
    const prompt = [{ type: 'text', text: 'go' }]
    const answer = await ask(child, 2, 'session/prompt', { sessionId, prompt })
    phases['prompt'] = note()
    if (!answer.includes('end_turn')) throw new Error(answer)
    child.stdin.end()
    await child.exited
    phases['dispose'] = note()
    return phases
  })
}

/** All that came until the answer was there. */
async function ask(child: Child, id: number, method: string, params: object): Promise<string> {
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
  let text = ''
  while (!text.includes(`"id":${id}`)) text += await child.said()
  return text
}

function stopwatch(): () => number {
  let last = performance.now()
  return () => {
    const time = performance.now() - last
    last += time
    return time
  }
}

function sum(phases: Readonly<Record<string, number>>): number {
  return Object.values(phases).reduce((total, time) => total + time, 0)
}
