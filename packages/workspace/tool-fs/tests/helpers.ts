/** What the tests of this package share. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { JsonValue, ToolResultContent } from '@deepseek-ai/dsh-llm'
import {
  bootYml,
  type ScriptedModel,
  scriptedModel,
  type TestContextOptions,
  temporaryFolder,
} from '@deepseek-ai/dsh-testkit'

export type Files = Readonly<Record<string, string | Buffer>>

/** A tool call: the tool and its arguments. */
export type Call = readonly [name: string, input: JsonValue]

export interface Result {
  readonly text: string
  readonly code?: string
  readonly isError: boolean
  readonly content: ToolResultContent
}

/** Boots core, file access and file tools from a yml. */
export function bootTools(config = '{}', options?: TestContextOptions): Promise<Context> {
  return bootYml(
    `
    - name: '@deepseek-ai/dsh-agent-core'
      config: { model: scripted }
    - name: '@deepseek-ai/dsh-tool-fs'
      config: ${config}
    - name: '@deepseek-ai/dsh-fs-local'
    `,
    options,
  )
}

export async function createWorkspace(files: Files = {}): Promise<string> {
  const folder = await temporaryFolder()
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
  return folder
}

/** A model that makes the calls of each inner list in one message, one list after another. */
export function callingModel(...steps: readonly (readonly Call[])[]): ScriptedModel {
  return scriptedModel([
    ...steps.map((calls) => ({ calls: calls.map(([name, input]) => ({ name, input })) })),
    'done',
  ])
}

/** Lets a model make calls, one message each, and gives their results. */
export async function resultsOf(
  ctx: Context,
  cwd: string,
  calls: readonly Call[],
): Promise<Result[]> {
  const model = callingModel(...calls.map((call) => [call]))
  const remove = ctx.llm.registerAdapter(model)
  const { agent, dispose } = ctx.agents.create({ cwd })
  await agent.send('go')
  const results = loggedResults(agent)
  await dispose()
  await remove()
  return results
}

/** The tool results in an agent's log. */
export function loggedResults(agent: Agent): Result[] {
  return [...agent.session.events()].flatMap((event) => {
    if (event.type !== 'tool/result') return []
    const { content, isError, code } = event.data
    const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    return [{ text, isError, code, content }]
  })
}

/** How many child processes this one has. */
export function childCount(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length
}
