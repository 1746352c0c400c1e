/** Trees of real children with real shells, through everything that a deployment loads. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { JsonValue, ModelRequest } from '@deepseek-ai/dsh-llm'
import {
  bootYml,
  type ScriptedReply,
  scriptedModel,
  temporaryFolder,
  waitFor,
} from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { entry, textOf } from './helpers.ts'

type Call = readonly [name: string, input: JsonValue]

/** The prompt of an agent that makes these calls, and then says that it is done. */
const calling = (...calls: Call[]): string => JSON.stringify(calls)
const bash = (command: string): Call => ['bash', { command }]
const child = (tool: string, ...calls: Call[]): Call => [
  tool,
  { description: tool, prompt: calling(...calls) },
]

async function bootTree(limits: Readonly<Record<string, number>> = {}) {
  const ctx = await bootYml(
    [
      entry('agent-core'),
      entry('subagent', limits),
      entry('subagent-spawn'),
      entry('subagent-fork'),
      entry('tool-subagent', { provider: 'spawn', toolName: 'spawn' }),
      entry('tool-subagent', { provider: 'fork', toolName: 'fork' }),
      entry('bash-local'),
      entry('tool-bash'),
    ].join(''),
  )
  const model = scriptedModel(answerTo)
  ctx.llm.registerAdapter(model)
  const folder = await temporaryFolder()
  const { agent: parent, dispose } = ctx.agents.create({ cwd: folder })
  const pidOf = (name: string): number => {
    const path = join(folder, name)
    return existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0
  }
  return { ctx, model, folder, parent, dispose, pidOf }
}

function answerTo({ messages }: ModelRequest): ScriptedReply {
  if (messages.at(-1)?.role === 'tool') return { text: 'done' }
  const calls = JSON.parse(textOf({ content: messages.at(-1)?.content as [] })) as Call[]
  return { calls: calls.map(([name, input]) => ({ name, input })) }
}

/** A command that goes on for ever in a background process, whose id is in a file. */
const forEver = (name: string): Call => bash(`sleep 1000 & echo $! >${name}; wait`)

/** Whether a process works; one that only waits to be reaped does not. */
function isRunning(pid: number): boolean {
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

function resultsOf({ session }: Agent): string[] {
  return [...session.events()].flatMap((event) =>
    event.type === 'tool/result' ? [textOf(event.data)] : [],
  )
}

describe('the end of a tree', () => {
  test.each([
    ['a cancel', async ({ parent }: { parent: Agent }) => parent.cancel('enough')],
    ['a disposal', ({ dispose }: { dispose: () => Promise<void> }) => dispose()],
  ])('by %s reaches every depth, each kind of child, the shells and the queue', async (...args) => {
    const tree = await bootTree({ maxConcurrentPerParent: 2 })
    const { ctx, model, folder, parent, pidOf } = tree
    const shells = ['one', 'two', 'three']
    const started: string[] = []
    ctx.on('subagent/start', ({ id }) => void started.push(id))
    const turn = parent.send(
      calling(
        child('spawn', child('spawn', forEver('one')), child('fork', forEver('two'))),
        child('fork', forEver('three')),
        child('spawn', forEver('queued')),
      ),
    )
    await waitFor('three shells', () => shells.every((name) => pidOf(name) > 0))
    expect(started).toHaveLength(4)
    expect(ctx.subagents.runs()).toHaveLength(5)
    const requests = model.requests.length

    await args[1](tree)

    expect(await turn).toMatchObject({ reason: 'aborted' })
    await waitFor('the children are gone', () => ctx.agents.list().every((one) => one === parent))
    expect(shells.map(pidOf).map(isRunning)).toEqual([false, false, false])
    expect(existsSync(join(folder, 'queued'))).toBe(false)
    expect(started).toHaveLength(4)
    expect(ctx.subagents.runs()).toEqual([])
    expect(model.requests).toHaveLength(requests)
  })
})

describe('the shells of a child', () => {
  test('end with it, those in the background too', async () => {
    const { parent, pidOf } = await bootTree()

    await parent.send(calling(child('spawn', bash('sleep 1000 & echo $! >left'))))

    expect(resultsOf(parent)).toEqual([expect.stringContaining('\ndone\n')])
    expect(pidOf('left')).toBeGreaterThan(0)
    expect(isRunning(pidOf('left'))).toBe(false)
  })

  test('move neither their parent nor their next command by a cd', async () => {
    const { ctx, folder, parent } = await bootTree()
    const places: string[] = []
    ctx.on('session/event', ({ event }) => {
      if (event.type === 'tool/result' && event.data.name === 'bash') {
        places.push(textOf(event.data).trim())
      }
    })
    const before = process.cwd()

    await parent.send(calling(child('spawn', bash('cd / && pwd'), bash('pwd')), bash('pwd')))

    expect(places).toEqual(['/', folder, folder])
    expect(process.cwd()).toBe(before)
  })
})
