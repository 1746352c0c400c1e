/** What the tests of this package share. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isHarnessError } from '@deepseek-ai/dsh-llm'
import { temporaryFolder, testContext } from '@deepseek-ai/dsh-testkit'
import FsService, { type FsAgent, type FsConfig } from '../src/index.ts'

export type Files = Readonly<Record<string, string | Buffer>>

export const anyRange = { firstLine: 1, maxLines: 1000, maxBytes: 100_000 }
export const anyLimits = { maxResults: 1000, maxBytes: 1_000_000 }

/** File access in a context that ends with the test. */
export async function createFs(config: Partial<FsConfig> = {}): Promise<FsService> {
  const ctx = testContext()
  await ctx.plugin(FsService, config)
  return ctx.fs
}

/** An agent whose workspace holds the files. */
export async function createAgent(files: Files = {}): Promise<FsAgent> {
  const cwd = await temporaryFolder()
  await addFiles(cwd, files)
  return { cwd }
}

export async function addFiles(folder: string, files: Files): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
}

/** The `CODE: message` that a promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
  } catch (error) {
    if (isHarnessError(error)) return `${error.code}: ${error.message}`
    throw error
  }
  throw new Error('it did not fail')
}
