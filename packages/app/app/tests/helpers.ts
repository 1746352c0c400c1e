/** Boots real configurations in this process, with streams that a test reads. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { AppStreams } from '@deepseek-ai/dsh-app'
import { temporaryProject } from '@deepseek-ai/dsh-testkit'

/** Streams of no terminal; `read` gives what was written to stderr so far. */
export function createStreams(): { readonly streams: AppStreams; readonly stderr: () => string } {
  let text = ''
  const stderr = new PassThrough().setEncoding('utf8')
  stderr.on('data', (piece: string) => (text += piece))
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr }
  return { streams: streams as unknown as AppStreams, stderr: () => text }
}

/** A temporary project with `dsh.yml`. @returns the path of the yml. */
export async function config(
  yml: string,
  files: Readonly<Record<string, string>> = {},
): Promise<string> {
  const folder = await temporaryProject()
  for (const [name, text] of Object.entries({ ...files, 'dsh.yml': yml })) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  return join(folder, 'dsh.yml')
}
