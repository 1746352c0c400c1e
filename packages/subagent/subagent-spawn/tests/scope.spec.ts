import type { SubagentToolFilter } from '@deepseek-ai/dsh-subagent'
import { collectWarnings } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { type Bench, createBench, registerTool, toolResultsOf } from './helpers.ts'

/** Starts a child under a filter and tells which tools its model was shown. */
async function shownTo(bench: Bench, toolFilter?: SubagentToolFilter): Promise<string[]> {
  await bench.delegate({ toolFilter })
  return bench.model.requests.at(-1)?.tools.map(({ name }) => name) ?? []
}

async function createToolBench(): Promise<Bench> {
  const bench = await createBench()
  for (const name of ['bash', 'edit', 'read']) registerTool(bench.ctx, name)
  return bench
}

describe('toolFilter', () => {
  test.each<[string, SubagentToolFilter | undefined, string[]]>([
    ['absent', undefined, ['bash', 'edit', 'read']],
    ['that allows', { allow: ['read', 'bash'] }, ['bash', 'read']],
    ['that denies', { deny: ['bash'] }, ['edit', 'read']],
    ['that does both', { allow: ['read', 'bash'], deny: ['bash'] }, ['read']],
    ['that allows nothing', { allow: [] }, []],
  ])('%s decides what the model is shown', async (_title, toolFilter, names) => {
    const bench = await createToolBench()

    const shown = await shownTo(bench, toolFilter)

    expect(shown).toEqual(names)
  })

  test.each([
    ['denied', 'bash', 'TOOL_DENIED'],
    ['made up', 'sudo', 'UNKNOWN_TOOL'],
    ['registered later', 'deploy', 'TOOL_DENIED'],
  ])('refuses a call of a tool that is %s', async (_title, name, code) => {
    const ran: string[] = []
    const { ctx, start } = await createBench({ model: [{ calls: [{ name }] }, 'done'] })
    const record = (tool: string) => async (): Promise<string> => `${ran.push(tool)}`
    registerTool(ctx, 'read', record('read'))
    registerTool(ctx, 'bash', record('bash'))
    const run = start({ toolFilter: { allow: ['read'] } })
    const session = ctx.sessions.get(run.id)

    registerTool(ctx, 'deploy', record('deploy'))
    await run.result

    const [call, ...others] = [...(session?.events() ?? [])].filter(
      ({ type }) => type === 'tool/result',
    )
    expect(call?.data).toMatchObject({ name, isError: true, code })
    expect(others).toEqual([])
    expect(ran).toEqual([])
    await run.dispose()
  })

  test('that denies a name hides the tool also when it is registered later', async () => {
    const bench = await createToolBench()
    const run = bench.start({ toolFilter: { deny: ['deploy'] } })

    registerTool(bench.ctx, 'deploy')
    await run.result

    expect(bench.model.requests.at(-1)?.tools.map(({ name }) => name)).toEqual([
      'bash',
      'edit',
      'read',
    ])
    await run.dispose()
  })

  test('that denies an unknown tool warns and starts', async () => {
    const bench = await createToolBench()
    const warnings = collectWarnings(bench.ctx)

    const shown = await shownTo(bench, { deny: ['bsh', 'bash'] })

    expect(shown).toEqual(['edit', 'read'])
    expect(warnings).toEqual([
      'toolFilter.deny names the unknown tool "bsh" (registered: bash, edit, read)',
    ])
  })

  test.each([
    ['bash, edit, read', ['bash', 'edit', 'read']],
    ['none', []],
  ])(
    'that allows an unknown tool refuses the start, names %s and leaves nothing',
    async (known, names) => {
      const { ctx, parent, start } = await createBench()
      for (const name of names) registerTool(ctx, name)

      const begin = () => start({ toolFilter: { allow: ['bsh'] } })

      expect(begin).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          message: `toolFilter.allow names the unknown tool "bsh" (registered: ${known})`,
        }),
      )
      expect(ctx.agents.list()).toEqual([parent])
      expect(ctx.sessions.list()).toEqual([parent.session])
      expect(ctx.subagents.runs()).toEqual([])
    },
  )

  test('gives a grandchild no more than its parent has, whatever is asked', async () => {
    const { ctx, model, start } = await createBench()
    for (const name of ['bash', 'edit', 'read']) registerTool(ctx, name)
    const child = start({ toolFilter: { deny: ['bash'] } })
    const parent = ctx.agents.get(child.id)
    if (parent === undefined) throw new Error('there is no child')
    const filters = [undefined, { allow: ['bash', 'read'] }, { deny: ['read'] }]

    const shown: unknown[] = []
    for (const toolFilter of filters) {
      const run = ctx.subagents.start('spawn', { prompt: 'go', parent, toolFilter })
      await run.result
      shown.push(model.requests.at(-1)?.tools.map(({ name }) => name))
      await run.dispose()
    }

    expect(shown).toEqual([['edit', 'read'], ['read'], ['edit']])
    await child.dispose()
  })

  test('holds for a grandchild that names what its grandparent was denied', async () => {
    const ran: string[] = []
    const { ctx, start } = await createBench({
      model: ({ sessionId }, index) => {
        const isGrandchild = ctx.sessions.get(sessionId as never)?.header.delegationDepth === 2
        return isGrandchild && index === 0 ? { calls: [{ name: 'bash' }] } : 'done'
      },
    })
    registerTool(ctx, 'bash', async () => `${ran.push('bash')}`)
    const child = start({ toolFilter: { deny: ['bash'] } })
    const parent = ctx.agents.get(child.id)
    if (parent === undefined) throw new Error('there is no child')

    const run = ctx.subagents.start('spawn', { prompt: 'go', parent })
    const session = ctx.sessions.get(run.id)
    await run.result

    expect(ran).toEqual([])
    expect(session && toolResultsOf(session)).toEqual(['tool "bash" is not allowed for this agent'])
    await run.dispose()
    await child.dispose()
  })

  test('does not touch the parent', async () => {
    const bench = await createToolBench()
    await shownTo(bench, { allow: [] })

    await bench.parent.send('go')

    expect(bench.model.requests.at(-1)?.tools).toHaveLength(3)
  })
})
