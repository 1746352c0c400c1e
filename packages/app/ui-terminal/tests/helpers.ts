/** Boots the terminal in this process, on streams that a test holds. */
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { WriteStream } from 'node:tty'
import { type AppRequest, type AppStreams, boot } from '@deepseek-ai/dsh-app'
import { temporaryProject, waitFor } from '@deepseek-ai/dsh-testkit'
import { onTestFinished } from 'vitest'

export interface Terminal {
  readonly streams: AppStreams
  /** What was written so far to both, in order: one screen. */
  readonly shown: () => string
  readonly stdout: () => string
  readonly stderr: () => string
  /** Presses keys. */
  readonly type: (keys: string) => void
  /** Waits until it is shown. */
  readonly shows: (text: string | RegExp) => Promise<void>
}

const getColorDepth = (env?: object): number => WriteStream.prototype.getColorDepth(env)

/** Two output streams and an input; terminals unless said otherwise. */
export function createTerminal({ isTTY = true, columns = 60 } = {}): Terminal {
  const written = { all: '', stdout: '', stderr: '' }
  const output = (name: 'stdout' | 'stderr'): PassThrough => {
    const stream = new PassThrough().setEncoding('utf8')
    stream.on('data', (text: string) => {
      written[name] += text
      written.all += text
    })
    return Object.assign(stream, isTTY ? { isTTY, columns, getColorDepth } : {})
  }
  const stdin = new PassThrough()
  if (isTTY) Object.assign(stdin, { isTTY, setRawMode: () => stdin })
  const streams = { stdin, stdout: output('stdout'), stderr: output('stderr') }
  const shown = (): string => written.all
  return {
    streams: streams as unknown as AppStreams,
    shown,
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    type: (keys) => void stdin.write(keys),
    shows: (text) =>
      waitFor(`${text} in ${JSON.stringify(shown())}`, () =>
        typeof text === 'string' ? shown().includes(text) : text.test(shown()),
      ),
  }
}

const entries = `
- name: '@deepseek-ai/dsh-agent-core'
  config: { abortGraceMs: 60000, stopGraceMs: 10 }
- name: '@deepseek-ai/dsh-subagent'
- name: '@deepseek-ai/dsh-subagent-spawn'
- name: '@deepseek-ai/dsh-tool-subagent'
  config: { provider: spawn, toolName: delegate }
- name: '@deepseek-ai/dsh-ui-terminal'
`

/** A configuration with the terminal that has not begun to serve. */
export async function booted(
  terminal: Terminal,
  request: Partial<AppRequest> = {},
  config: Readonly<Record<string, unknown>> = {},
) {
  const yml = `${entries}  config: ${JSON.stringify(config)}\n`
  const folder = await temporaryProject({ 'dsh.yml': yml })
  const { streams } = terminal
  const app = await boot(join(folder, 'dsh.yml'), { streams, request: { cwd: folder, ...request } })
  const controller = new AbortController()
  onTestFinished(async () => {
    controller.abort()
    await app.dispose()
  })
  return { ...app, controller, begin: () => app.serve(controller.signal) }
}
