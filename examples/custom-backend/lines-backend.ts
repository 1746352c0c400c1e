/** Subagent backend: starts a program for each prompt, and reads its answer as lines of JSON. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import { messageOf } from '@deepseek-ai/dsh-llm'
import {
  ByteTail,
  type CareProcess,
  cleanEnvironment,
  type ProcessExit,
  startProcess,
} from '@deepseek-ai/dsh-process'
import {
  SubagentError,
  type SubagentResult,
  type SubagentRun,
  type SubagentRunContext,
  type SubagentStartRequest,
} from '@deepseek-ai/dsh-subagent'
import z from '@deepseek-ai/schemastery'
import { Answer } from './answer.ts'

export const name = 'lines-backend'
export const inject = ['subagents']

export interface Config {
  /** Name on `ctx.subagents`. */
  providerName: string
  /** The program; a path counts from the folder of the yml, a bare name is looked up on the PATH. */
  command: string
  args: string[]
  /** How long the program may take to end after SIGTERM, in ms. */
  graceMs: number
}

export const Config: z<Partial<Config> & Pick<Config, 'command'>, Config> = z.object({
  providerName: z.string().default('lines'),
  command: z.string().required(),
  args: z.array(z.string()).default([]),
  graceMs: z.natural().max(60_000).default(3000),
})

export function apply(ctx: Context, config: Config): void {
  const folder = fileURLToPath(new URL('.', ctx.baseUrl))
  const { args, graceMs } = config
  const command = config.command.includes('/') ? resolve(folder, config.command) : config.command
  ctx.subagents.registerProvider({
    name: config.providerName,
    // What this says no to is refused by the seam, before a program is started.
    capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
    inheritsParentContext: false,
    start: (request, context) => new LinesRun({ command, args, graceMs }, request, context),
  })
}

type Program = Pick<Config, 'command' | 'args' | 'graceMs'>

class LinesRun implements SubagentRun {
  readonly id: SubagentRun['id']
  readonly result: Promise<SubagentResult>
  private readonly graceMs: number
  private readonly answer: Answer
  private readonly child: CareProcess
  private readonly cancelled = Promise.withResolvers<SubagentResult>()
  private disposal: Promise<void> | undefined

  constructor(program: Program, request: SubagentStartRequest, context: SubagentRunContext) {
    const { command, args, graceMs } = program
    const { prompt, parent, agentOptions = {} } = request
    const [option] = Object.keys(agentOptions)
    if (option !== undefined) {
      throw new SubagentError(
        'INVALID_REQUEST',
        `the program "${command}" cannot take agentOptions "${option}"`,
      )
    }
    this.id = context.childId
    this.graceMs = graceMs
    this.answer = new Answer((activity) => context.report(activity))
    const env = cleanEnvironment()
    this.child = startProcess({ command, args, cwd: parent.cwd, env, stdin: 'pipe' })
    this.child.stdin?.end(prompt)
    this.result = Promise.race([this.listen(), this.cancelled.promise])
  }

  cancel(): void {
    this.cancelled.resolve({ output: this.answer.output, stopReason: 'aborted' })
    // Never rejects; whoever disposes the run waits for it.
    void this.child.stop({ termGraceMs: this.graceMs })
  }

  dispose(): Promise<void> {
    this.disposal ??= this.disposeOnce()
    return this.disposal
  }

  private async disposeOnce(): Promise<void> {
    this.cancel()
    const survivors = await this.child.stop({ termGraceMs: this.graceMs })
    if (survivors.length > 0) throw new Error(`could not be killed: ${survivors.join(', ')}`)
  }

  /** Never rejects: whatever becomes of the program is a result. */
  private async listen(): Promise<SubagentResult> {
    const { child, answer } = this
    const errors = new ByteTail(2048)
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
    try {
      for await (const line of linesOf(child)) answer.hear(line)
      const failure = failureOf(await child.exited)
      if (failure === undefined) return { output: answer.output, stopReason: answer.stopReason }
      throw new Error(`${failure} ${errors.text()}`.trim())
    } catch (error) {
      return { output: answer.output, stopReason: 'error', diagnostic: messageOf(error) }
    }
  }
}

async function* linesOf({ stdout }: CareProcess): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of stdout.setEncoding('utf8')) {
    const lines = `${rest}${String(chunk)}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

function failureOf(exit: ProcessExit): string | undefined {
  switch (exit.kind) {
    case 'exited':
      return exit.code === 0 ? undefined : `the program exited with code ${exit.code}:`
    case 'killed':
      return `the program was killed by ${exit.signal}:`
    case 'failed':
      return exit.error.message
  }
}
