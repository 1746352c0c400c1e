/** The REPL: a line, or a paste, is a prompt, `/word` is a command, Ctrl-C cancels what runs. */
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import type { Agent } from '@deepseek-ai/dsh-agent'
import { sanitize } from '@deepseek-ai/dsh-app'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { Family } from './family.ts'
import { Inputs } from './inputs.ts'
import { showChildren, showEvent } from './progress.ts'
import { Screen } from './screen.ts'
import { failureLine, openAgent, type Serving, sessionIdOf } from './serving.ts'
import { oneLine } from './text.ts'

const interruptedCode = 130
const help =
  '/model [name]  show or choose the model\n/exit          leave (Ctrl-D)\nCtrl-C cancels the turn and its children; when idle it leaves'

/** Serves prompts until the user leaves; gives 0, or 130 after Ctrl-C. */
export async function serveRepl(serving: Serving): Promise<number> {
  const { agent, dispose } = await openAgent(serving, sessionIdOf(serving.request))
  try {
    const repl = new Repl(serving, agent)
    try {
      return await repl.run()
    } finally {
      repl.close()
    }
  } finally {
    await dispose()
  }
}

/** One agent and one reader of lines. */
class Repl {
  private readonly serving: Serving
  private readonly agent: Agent
  private readonly screen: Screen
  private readonly output: MutedOutput
  private readonly lines: Interface
  private readonly inputs: Inputs
  private readonly left = Promise.withResolvers<undefined>()
  private readonly undo: (() => void)[]
  private code = 0
  private isRunning = false
  private isCancelled = false
  /** Whether the input has ended; a turn may still run. */
  private isClosed = false

  constructor(serving: Serving, agent: Agent) {
    const { ctx, streams, control } = serving
    const { stdin, stdout } = streams
    this.serving = serving
    this.agent = agent
    this.screen = new Screen(streams)
    this.output = new MutedOutput(stdout)
    const isTerminal = stdin.isTTY && stdout.isTTY
    this.lines = createInterface({
      input: stdin,
      ...(isTerminal && { output: this.output }),
      terminal: isTerminal,
      prompt: serving.config.prompt,
      historySize: 200,
    })
    this.inputs = new Inputs(this.lines, streams)
    this.lines.on('SIGINT', () => this.interrupt())
    // Back in the foreground: Node stops reading, and leaves it to a listener to go on.
    this.lines.on('SIGCONT', () => this.lines.resume())
    this.lines.on('close', () => (this.isClosed = true))
    control.onInterrupt(() => this.interrupt())
    control.onLog((text) => this.log(sanitize(text)))
    control.signal.addEventListener('abort', () => this.leave(0), { once: true })
    this.undo = [this.showAgent(), showChildren(ctx, new Family(agent.id), this.screen)]
  }

  async run(): Promise<number> {
    if (this.serving.control.signal.aborted) return 0
    const { model, id } = this.agent
    const isStored = this.serving.ctx.sessions.table.isStored(id)
    const session = isStored ? `session ${id}` : 'session not stored'
    this.screen.line(oneLine(`model ${model}, ${session}, /help`, this.screen.columns), 'dim')
    const inputs = this.inputs[Symbol.asyncIterator]()
    while (true) {
      this.ask()
      const next = await Promise.race([inputs.next(), this.left.promise])
      if (next === undefined || next.done === true) return this.code
      await Promise.race([this.take(next.value), this.left.promise])
    }
  }

  close(): void {
    for (const undo of this.undo) undo()
    this.inputs.dispose()
    this.lines.close()
    if (this.lines.terminal && !this.isRunning) this.screen.text('\n')
    this.output.release()
  }

  /** While a turn runs, what is typed is kept for later and not echoed into the answer. */
  private ask(): void {
    this.output.isMuted = false
    if (this.lines.terminal && !this.isClosed) this.lines.prompt(true)
  }

  private async take(input: string): Promise<void> {
    const [, command, argument = ''] = /^\/(\w+)(?:[^\S\n]+(.*))?$/.exec(input) ?? []
    if (command !== undefined) this.obey(command, argument.trim())
    else if (input.trim() !== '') await this.prompt(input)
  }

  private async prompt(text: string): Promise<void> {
    this.output.isMuted = true
    this.isRunning = true
    this.isCancelled = false
    const end = await this.agent.send(text)
    this.isRunning = false
    this.screen.endText()
    if (end.reason !== 'completed') this.screen.line(oneLine(failureLine(end), 1000), 'red')
  }

  private obey(command: string, argument: string): void {
    switch (command) {
      case 'help':
        this.screen.line(help)
        break
      case 'model':
        this.chooseModel(argument)
        break
      case 'exit':
        this.leave(0)
        break
      default:
        this.screen.line(
          `no command "/${oneLine(command, 40)}": /help lists them; a space in front makes it a prompt`,
        )
    }
  }

  private chooseModel(name: string): void {
    const { agent, screen, serving } = this
    try {
      if (name !== '') agent.setModel(name)
    } catch (error) {
      screen.line(oneLine(messageOf(error), 1000), 'yellow')
      return
    }
    const known = serving.ctx.llm.models().map((model) => model.name)
    screen.line(oneLine(`model ${agent.model} (known: ${known.join(', ')})`, 1000))
  }

  private interrupt(): void {
    if (this.isRunning && !this.isCancelled) {
      this.isCancelled = true
      this.agent.cancel('interrupted')
    } else if (!this.isRunning && this.inputs.hasDraft) {
      this.inputs.dropDraft()
    } else {
      this.leave(interruptedCode)
    }
  }

  private leave(code: number): void {
    this.code = code
    this.agent.cancel('the user left')
    this.left.resolve(undefined)
  }

  /** Over the prompt that waits, which is then drawn anew. */
  private log(text: string): void {
    if (!this.lines.terminal || this.isRunning) return this.screen.line(text)
    this.output.write('\r\u001b[J')
    this.screen.line(text)
    this.lines.prompt(true)
  }

  private showAgent(): () => void {
    const { agent, screen, serving } = this
    const { ctx, config } = serving
    const undo = [
      ctx.on('agent/delta', ({ agent: { id }, kind, text }) => {
        if (id === agent.id && kind === 'text') screen.text(text)
      }),
      ctx.on('session/event', ({ session: { id }, event }) => {
        if (id !== agent.id) return
        if (event.type === 'assistant/message') screen.endText()
        showEvent(screen, event, { showReasoning: config.showReasoning, showText: false })
      }),
    ]
    return () => {
      for (const off of undo) off()
    }
  }
}

/** A terminal that readline draws on, until it is muted. */
class MutedOutput extends Writable {
  isMuted = false
  readonly isTTY = true
  private readonly terminal: NodeJS.WriteStream

  constructor(terminal: NodeJS.WriteStream) {
    super({ decodeStrings: false })
    this.terminal = terminal
    terminal.on('resize', this.onResize)
  }

  get columns(): number {
    return this.terminal.columns
  }

  release(): void {
    this.terminal.off('resize', this.onResize)
  }

  override _write(chunk: string | Buffer, _encoding: string, done: () => void): void {
    if (!this.isMuted) this.terminal.write(chunk)
    done()
  }

  private readonly onResize = (): void => {
    this.emit('resize')
  }
}
