/** What plugins of a live delegation may do: come in any order, and be reloaded. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { ModelRequest } from '@deepseek-ai/dsh-llm'
import { bootYml, gate, type ScriptedReply, scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { countListeners, entry, fiberOf, textOf } from './helpers.ts'

const entries = [
  entry('agent-core'),
  entry('subagent'),
  entry('subagent-spawn'),
  entry('subagent-fork'),
  entry('tool-subagent', { provider: 'spawn', toolName: 'spawn' }),
  entry('tool-subagent', { provider: 'fork', toolName: 'fork' }),
]

const rotations = entries.map((_, index) => [...entries.slice(index), ...entries.slice(0, index)])

/**
 * A parent that delegates once by each tool; the children answer when `until` is over. A log that
 * is not sound is an error in the log of the context, and fails the test.
 */
async function bootParent(yml: readonly string[], until: Promise<void> = Promise.resolve()) {
  const ctx = await bootYml(yml.join(''))
  const model = scriptedModel((request: ModelRequest): ScriptedReply => {
    const [block] = request.messages.findLast(({ role }) => role === 'user')?.content ?? []
    if (block?.type !== 'text' || block.text !== 'go') return { text: 'the answer', until }
    if (request.messages.at(-1)?.role === 'tool') return { text: 'done' }
    const input = { description: 'a task', prompt: 'a task' }
    return { calls: ['spawn', 'fork'].map((name) => ({ name, input })) }
  })
  ctx.llm.registerAdapter(model)
  return { ctx, model, parent: ctx.agents.create({ cwd: '/' }).agent }
}

function resultsOf({ session }: Agent): string[] {
  return [...session.events()].flatMap((event) =>
    event.type === 'tool/result' ? [textOf(event.data)] : [],
  )
}

const answered = expect.stringMatching(/ completed\.[^]*\nthe answer\n/) as string
const stopped = expect.stringContaining('was stopped before it had finished') as string

describe('the order of the entries', () => {
  test.each([...rotations, entries.toReversed()].map((yml, index) => [index, yml] as const))(
    'does not matter: %i',
    async (_, yml) => {
      const { ctx, parent } = await bootParent(yml)

      await parent.send('go')

      expect(ctx.tools.table.names().toSorted()).toEqual(['fork', 'spawn'])
      expect(resultsOf(parent)).toEqual([answered, answered])
    },
  )
})

describe('a reload in the middle of a delegation', () => {
  test.each([
    ['subagent-spawn', [answered, answered]],
    ['subagent-fork', [answered, answered]],
    ['tool-subagent', [answered, answered]],
    ['dsh-subagent', [stopped, stopped]],
  ])('of %s leaves a sound log, and tools that work', async (name, results) => {
    const held = gate()
    const { ctx, model, parent } = await bootParent(entries, held.opened)
    await fiberOf(ctx, name).restart()
    await ctx.loader.await()
    const listeners = countListeners(ctx)
    const turn = parent.send('go')
    await waitFor('both children work', () => model.requests.length === 3)

    await fiberOf(ctx, name).restart()
    await ctx.loader.await()
    held.open()

    expect(await turn).toEqual({ reason: 'completed' })
    expect(resultsOf(parent)).toEqual(results)
    expect(parent.session.at(parent.session.length - 1)?.type).toBe('turn/end')
    await waitFor('the children are gone', () => ctx.agents.list().length === 1)
    expect(countListeners(ctx)).toBe(listeners)
    await parent.send('go')
    expect(resultsOf(parent).slice(2)).toEqual([answered, answered])
  })
})
