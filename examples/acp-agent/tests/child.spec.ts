import { join } from 'node:path'
import { bootYml, scriptedModel } from '@deepseek-ai/dsh-testkit'
import { listSessions } from '@deepseek-ai/dsh-session-jsonl'
import { describe, expect, test } from 'vitest'
import { copyOfExample, dsh } from './helpers.ts'

describe('cordis.demo.yml as a child of another dsh', () => {
  test.each([
    ['started for its run', undefined],
    ['that waited for one', { warm: 1, idleMs: 60_000 }],
  ])('%s keeps a session that names the call of its parent', async (_, pool) => {
    const copy = await copyOfExample()
    const config = {
      command: process.execPath,
      args: [dsh, join(copy.folder, 'cordis.demo.yml')],
      cwd: copy.project,
      env: { DSH_DEMO_SESSIONS: copy.state },
      pool,
    }
    const ctx = await bootYml(`
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-acp'
  config: ${JSON.stringify(config)}
`)
    ctx.llm.registerAdapter(scriptedModel([]))
    const { agent: parent } = ctx.agents.create({ cwd: copy.project })

    const run = ctx.subagents.start('acp', { prompt: 'hello', parent, callId: 'call-7' })
    const { output } = await run.result
    await run.dispose()

    const { sessions, problems } = await listSessions(copy.state)
    expect(output).toMatchObject([{ text: expect.stringContaining('I am a script') }])
    expect(problems).toEqual([])
    expect(sessions).toMatchObject([
      {
        header: {
          cwd: copy.project,
          parentSession: parent.id,
          delegationDepth: 1,
          origin: { provider: 'acp', callId: 'call-7' },
        },
        state: 'completed',
      },
    ])
  })
})
