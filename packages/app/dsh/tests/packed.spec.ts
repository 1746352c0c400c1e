import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from '@deepseek-ai/dsh-testkit'
import { expect, test } from 'vitest'

const execute = promisify(execFile)
const root = fileURLToPath(new URL('../../../..', import.meta.url))

/** What the installation is given, each with the packages that it needs. */
const packages = ['dsh', 'dsh-agent-core', 'dsh-llm-scripted', 'dsh-ui-terminal']
const filters = packages.flatMap((name) => ['--filter', `@deepseek-ai/${name}...`])

const yml = `
- name: '@deepseek-ai/dsh-agent-core'
- name: '@deepseek-ai/dsh-llm-scripted'
  config: { rules: [{ reply: { text: 'packed: {{user}}' } }] }
- name: '@deepseek-ai/dsh-ui-terminal'
`

async function run(command: string, args: readonly string[], cwd: string) {
  try {
    return await execute(command, args, { cwd })
  } catch (error) {
    const { message, stdout } = error as Error & { stdout: string }
    throw new Error(`${message}\n${stdout}`, { cause: error })
  }
}

/** The pnpm that runs the tests, or else the one that the workspace names. */
async function pnpm(...args: readonly string[]): Promise<void> {
  const script = process.env.npm_execpath
  if (script?.includes('pnpm') === true && script.endsWith('js')) {
    await run(process.execPath, [script, ...args], root)
    return
  }
  const { packageManager } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    packageManager: string
  }
  await run('npx', ['--yes', packageManager, ...args], root)
}

/** Our packages come from their tarballs, also where one needs another; only the rest from a registry. */
async function manifest(tarballs: string): Promise<string> {
  const names = (await readdir(tarballs)).map((file) => ({
    name: file.replace(/^deepseek-ai-(.*)-\d+\.\d+\.\d+\.tgz$/, '@deepseek-ai/$1'),
    path: `file:${join(tarballs, file)}`,
  }))
  return JSON.stringify({
    private: true,
    type: 'module',
    dependencies: Object.fromEntries(names.map(({ name, path }) => [name, path])),
    overrides: Object.fromEntries(names.map(({ name }) => [name, `$${name}`])),
  })
}

test(
  'the packed packages run with plain node from an empty folder',
  { timeout: 180_000 },
  async () => {
    const tarballs = await temporaryFolder()
    const folder = await temporaryFolder()
    await pnpm(...filters, 'build')
    await pnpm(...filters, 'pack', '--pack-destination', tarballs)
    await writeFile(join(folder, 'package.json'), await manifest(tarballs))
    await writeFile(join(folder, 'cordis.yml'), yml)
    await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], folder)

    const bin = join(folder, 'node_modules/.bin/dsh')
    const { stdout, stderr } = await run(process.execPath, [bin, 'cordis.yml', '-p', 'hi'], folder)

    expect({ stdout, stderr }).toEqual({ stdout: 'packed: hi\n', stderr: '' })
    const lock = await readFile(join(folder, 'package-lock.json'), 'utf8')
    expect(lock.match(/"resolved": "https?:[^"]*\/dsh(-[a-z-]+)?-\d[^"]*"/g)).toBeNull()
  },
)
