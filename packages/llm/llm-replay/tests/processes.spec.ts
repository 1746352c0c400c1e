import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  collectErrors,
  scriptedModel,
  temporaryFolder,
  temporaryProject,
} from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { readFixture, type RecordedReply } from '../src/fixture.ts'
import {
  boot,
  delegating,
  fixturePath,
  isAnswered,
  play,
  resultsOf,
  type Run,
  unload,
} from './helpers.ts'

const dsh = fileURLToPath(new URL('bin.ts', import.meta.resolve('@deepseek-ai/dsh')))
const name = 'children-in-other-processes'
const prompts = ['delegate']

/** An agent of our own as a child: it may delegate to a child in its own process. */
const childYml = (mode: string, fixture: string): string => `
- name: '@deepseek-ai/dsh-llm-replay'
  config: { mode: ${mode}, fixture: ${fixture} }
- name: '@deepseek-ai/dsh-llm-scripted'
  disabled: ${mode === 'replay'}
  config:
    rules:
      - when: { user: '^pass it on$', step: 0 }
        reply: { calls: [{ name: subagent, input: { description: on, prompt: the rest } }] }
      - when: { result: '(re: .+)' }
        reply: { text: 'my child says {{result.1}}' }
      - reply: { text: 're: {{user}}', usage: { inputTokens: 3, outputTokens: 4 } }
- name: '@deepseek-ai/dsh-agent-core'
  config: { model: scripted }
- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: spawn }
- name: '@deepseek-ai/dsh-acp'
`

/** Runs the parent in this process, and each child as the real command with its part of a fixture. */
async function run(mode: 'record' | 'replay', parent: string, children: string): Promise<Run> {
  const folder = await temporaryProject({ 'child.yml': childYml(mode, children) })
  const config = { command: process.execPath, args: [dsh, join(folder, 'child.yml')] }
  const entries = `
- name: '@deepseek-ai/dsh-subagent-acp'
  config: ${JSON.stringify(config)}
`
  const ctx = await boot({ mode, fixture: parent }, { entries })
  const errors = collectErrors(ctx)
  if (mode === 'record') ctx.llm.registerAdapter(scriptedModel(script))
  const played = await play(ctx, { prompts })
  await unload(ctx)
  expect(errors).toEqual([])
  return played
}

const script = (request: Parameters<typeof resultsOf>[0]) =>
  isAnswered(request)
    ? resultsOf(request).join(', ')
    : delegating(
        { provider: 'acp', callId: 'alone', prompt: 'work' },
        { provider: 'acp', callId: 'further', prompt: 'pass it on' },
      )

const files = [`${name}.json`, `${name}/parent.alone.json`, `${name}/parent.further.json`]

describe('a parent whose children are processes', () => {
  test('is recorded together with them', async () => {
    const folder = await temporaryFolder()

    const { story } = await run('record', join(folder, `${name}.json`), join(folder, `${name}/`))

    for (const file of files) {
      const recorded = await readFile(join(folder, file), 'utf8')
      await expect(recorded).toMatchFileSnapshot(fixturePath(file))
    }
    await expect(story).toMatchFileSnapshot(fixturePath(`${name}.log`))
  })

  test('is replayed with them to the same log', async () => {
    const { story } = await run('replay', fixturePath(`${name}.json`), fixturePath(`${name}/`))

    await expect(story).toMatchFileSnapshot(fixturePath(`${name}.log`))
  })
})

describe('a child process that is another one than the recorded one', () => {
  test.each<[string, (replies: readonly RecordedReply[]) => object, string]>([
    [
      'was not recorded',
      (replies) => ({ 'parent/other': replies }),
      'REPLAY_MISSING: has no session "parent/alone" (recorded: parent/other)',
    ],
    [
      'asks too often',
      (replies) => ({ 'parent/alone': [], 'parent/other': replies }),
      'REPLAY_EXHAUSTED: session "parent/alone" asks for reply 1, recorded are 0',
    ],
    [
      'asks too little',
      (replies) => ({ 'parent/alone': [...replies, ...replies] }),
      'REPLAY_UNUSED: session "parent/alone" asked for 1 of 2 recorded replies',
    ],
  ])('and %s tells its parent', async (_, change, expected) => {
    const { sessions } = readFixture(fixturePath(`${name}/parent.alone.json`))
    const path = join(await temporaryFolder(), 'child.json')
    const changed = { version: 1, sessions: change(sessions['parent/alone'] ?? []) }
    await writeFile(path, JSON.stringify(changed))

    const { story } = await run('replay', fixturePath(`${name}.json`), path)

    const [code = '', message = ''] = expected.split(/: (.*)/)
    const line = story.split('\n').find((each) => each.includes('result alone: '))
    expect(line).toContain(`error: the agent failed at session/prompt: "${path}"`)
    expect(line).toContain(`${message} ({"code":"${code}"})`)
  })
})
