/** Delegation through the real tool while every session is kept. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { ModelRequest } from '@deepseek-ai/dsh-llm'
import type { SessionId } from '@deepseek-ai/dsh-session'
import { gate, type ScriptedReply, scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { createHost, linesOf, namesIn, typesIn } from './helpers.ts'

const tools = `
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: spawn, toolName: spawn, maxOutputBytes: 1024 }
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: fork, toolName: fork }
`

type Content = readonly { readonly type: string }[]

function textOf(content: Content = []): string {
  return content.map((block) => ('text' in block ? String(block.text) : '')).join('')
}

function promptOf({ messages }: ModelRequest): string {
  return textOf(messages.findLast(({ role }) => role === 'user')?.content)
}

function delegation(tool: string, ...prompts: string[]): ScriptedReply {
  return {
    calls: prompts.map((prompt, index) => ({
      name: tool,
      callId: `call-${index}`,
      input: { description: `task ${index}`, prompt },
    })),
  }
}

/** Says by which model it speaks, and has a child do so when it is told to go. */
function tellModel(request: ModelRequest): string | ScriptedReply {
  if (promptOf(request) !== 'go') return request.model
  return request.messages.at(-1)?.role === 'tool' ? 'done' : delegation('spawn', 'who are you?')
}

function resultsOf({ session }: Agent): string[] {
  return [...session.events()].flatMap((event) =>
    event.type === 'tool/result' ? [textOf(event.data.content)] : [],
  )
}

describe('five calls in one message', () => {
  test.each(['spawn', 'fork'])(
    'of %s all settle, in call order, and all are on disk',
    async (tool) => {
      const prompts = ['a', 'b', 'c', 'd', 'e']
      const gates = new Map(prompts.map((prompt) => [prompt, gate()]))
      let asked = 0
      const host = await createHost(
        async (request) => {
          const prompt = promptOf(request)
          if (prompt === 'hello') return 'hello'
          if (prompt === 'go') {
            return request.messages.at(-1)?.role === 'tool' ? 'done' : delegation(tool, ...prompts)
          }
          asked += 1
          await gates.get(prompt)?.opened
          return `answer ${prompt}`
        },
        { yml: tools },
      )
      const { ctx, root, fileOf } = host
      const parent = host.createAgent()
      await parent.send('hello')
      const children: SessionId[] = []
      ctx.on('subagent/start', ({ id }) => void children.push(id))

      const turn = parent.send('go')
      await waitFor('five children', () => asked === 5)
      for (const held of [...gates.values()].toReversed()) held.open()

      expect(await turn).toEqual({ reason: 'completed' })
      const results = resultsOf(parent)
      expect(results).toHaveLength(5)
      for (const [index, prompt] of prompts.entries()) {
        expect(results[index]).toContain(`\nanswer ${prompt}\n`)
      }
      expect(linesOf(fileOf(parent)).slice(1)).toStrictEqual([...parent.session.events()])
      for (const id of children) expect(typesIn(fileOf({ id })).at(-1)).toBe('turn/end')
      expect(namesIn(root).filter((name) => name.endsWith('.jsonl'))).toHaveLength(6)
      expect(ctx.agents.list()).toEqual([parent])
    },
  )
})

describe('the answer of a child that is too long', () => {
  test('points to the session whose file has all of it', async () => {
    const text = `begin ${'é'.repeat(5000)} end`
    const host = await createHost(
      (request) =>
        promptOf(request) !== 'go'
          ? text
          : request.messages.at(-1)?.role === 'tool'
            ? 'done'
            : delegation('spawn', 'tell all'),
      { yml: tools },
    )
    const parent = host.createAgent()

    await parent.send('go')

    const [result = ''] = resultsOf(parent)
    expect(Buffer.byteLength(result)).toBeLessThanOrEqual(1024)
    const [, id = ''] = /the full text is in session (\S+) …/.exec(result) ?? []
    expect(readFileSync(host.fileOf({ id: id as SessionId }), 'utf8')).toContain(text)
  })

  test('points nowhere when no store keeps the session', async () => {
    const host = await createHost(
      (request) =>
        promptOf(request) !== 'go'
          ? 'é'.repeat(5000)
          : request.messages.at(-1)?.role === 'tool'
            ? 'done'
            : delegation('spawn', 'tell all'),
      { yml: tools, isVolatile: true },
    )
    const parent = host.createAgent()

    await parent.send('go')

    expect(resultsOf(parent)[0]).toMatch(/bytes left out; they are not kept: ask for less/)
  })
})

describe('the children of a parent that is resumed', () => {
  test('have its model, its folder and its depth', async () => {
    const first = await createHost(tellModel, { yml: tools })
    first.ctx.llm.registerAdapter(scriptedModel(tellModel, 'other'))
    const cwd = resolve('/usr')
    const { id } = first.createAgent({ cwd, delegationDepth: 1, options: { model: 'other' } })
    await first.ctx.agents.get(id)?.send('hello')
    await first.ctx.fiber.dispose()

    const { ctx } = await createHost(tellModel, { yml: tools, root: first.root })
    ctx.llm.registerAdapter(scriptedModel(tellModel, 'other'))
    const headers: unknown[] = []
    ctx.on('subagent/start', (run) => void headers.push(ctx.sessions.get(run.id)?.header))
    const { agent } = await ctx.agents.resume(id)
    await agent.send('go')

    expect(resultsOf(agent)).toEqual([expect.stringContaining('\nother\n')])
    expect(headers).toMatchObject([{ cwd, delegationDepth: 2, parentSession: id }])
  })
})
