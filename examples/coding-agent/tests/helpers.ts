/** Copies of the example, so that neither a `.env` nor an edit beside it reaches a test. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import Include from '@deepseek-ai/cordis-plugin-include'
import Loader from '@deepseek-ai/cordis-plugin-loader'
import { temporaryFolder, testContext } from '@deepseek-ai/dsh-testkit'
import { onTestFinished, vi } from 'vitest'

const examples = fileURLToPath(new URL('../..', import.meta.url))
const dsh = fileURLToPath(new URL('bin.ts', import.meta.resolve('@deepseek-ai/dsh')))

/** No variable that chooses a model. */
export const noKeys = {
  DEEPSEEK_API_KEY: '',
  OPENAI_API_KEY: '',
  OPENAI_BASE_URL: '',
  OPENAI_MODEL: '',
  ANTHROPIC_API_KEY: '',
}

export type Variables = Partial<typeof noKeys>

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Copies the example, and the one that it runs as a child, to a temporary folder; gives the path of the copy. */
export async function copyOfExample(): Promise<string> {
  const root = join(await temporaryFolder(), 'examples')
  for (const name of ['coding-agent', 'acp-agent']) {
    const source = join(examples, name)
    await cp(source, join(root, name), {
      recursive: true,
      filter: (path) => !['node_modules', 'tests', '.env'].includes(basename(path)),
    })
    await symlink(join(source, 'node_modules'), join(root, name, 'node_modules'))
  }
  return join(root, 'coding-agent')
}

/** Runs the demo of a copy. */
export function runDemo(copy: string): Promise<Finished> {
  return runNode([join(copy, 'demo.ts')], copy, {})
}

/** Runs the command on a yml of a copy, in its broken project. */
export function runDsh(copy: string, args: readonly string[], env: Variables): Promise<Finished> {
  const [config = '', ...rest] = args
  return runNode([dsh, join(copy, config), ...rest], join(copy, 'broken-project'), env)
}

/** Boots `cordis.yml` in this process, without its front end and its watcher. */
export async function bootWith(env: Variables): Promise<Context> {
  const variables = { ...noKeys, XDG_STATE_HOME: await temporaryFolder(), ...env }
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  const ctx = testContext()
  ctx.baseUrl = pathToFileURL(`${await copyOfExample()}/`).href
  await ctx.plugin(Loader)
  ctx.loader.builtins.include = Include
  const patches = ['terminal', 'hmr'].map((id) => ({ id, disabled: true }))
  await ctx.loader.create({
    name: 'cordis:include',
    config: { path: './cordis.yml', patches },
  })
  await ctx.loader.await()
  return ctx
}

async function runNode(args: readonly string[], cwd: string, env: Variables): Promise<Finished> {
  const { DSH_DEBUG: _, FORCE_COLOR: __, ...ambient } = process.env
  const child = spawn(process.execPath, args, {
    cwd,
    // Where sessions are kept.
    env: { ...ambient, ...noKeys, XDG_STATE_HOME: await temporaryFolder(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const finished = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await finished
  })
  const [code] = (await finished) as [number | null]
  return { code, ...output }
}
