/** The protocol of one run: handshake, session, one prompt. */
import type { ActiveSession, ClientContext, PromptResponse } from '@agentclientprotocol/sdk'
import { within } from '@deepseek-ai/dsh-llm'
import { z } from 'zod'
import { AgentProcess } from './agent-process.ts'
import type { Config } from './config.ts'
import { AcpChildError, isRequestError } from './errors.ts'
import type { Transcript } from './transcript.ts'

const protocolVersion = 1
/** Source: the error codes of the protocol's schema. */
const authRequired = -32000
/** Some agents send the last chunks after the response: it is over when none came for this long, in ms. */
const quietMs = 3
/** The same while there is no text at all, and so likely more to come. */
const quietWithoutTextMs = 100

/** What a child may know of where it comes from; it travels in `_meta`, for agents that are ours. */
export interface Lineage {
  readonly depth: number
  readonly origin: {
    readonly runId: string
    readonly parentSessionId: string
    /** The parent's tool call that asks for the child. */
    readonly callId?: string
    /** The name under which the parent knows this kind of child. */
    readonly provider: string
  }
}

/** What a session is opened with. */
export interface Task {
  readonly cwd: string
  readonly lineage: Lineage
}

/** The SDK does not look into responses: these are the parts that are relied on. */
const handshake = z.object({
  protocolVersion: z.unknown().optional(),
  authMethods: z.array(z.object({ id: z.string() })).catch([]),
})

const choice = z.object({ value: z.string() })
const settings = z.object({
  sessionId: z.string(),
  modes: z
    .object({ availableModes: z.array(z.object({ id: z.string() })) })
    .optional()
    .catch(undefined),
  configOptions: z
    .array(
      z.object({
        id: z.string(),
        category: z.unknown().optional(),
        // A choice may be a group of choices.
        options: z
          .array(
            z.union([
              choice.transform((one) => [one]),
              z.object({ options: z.array(choice) }).transform(({ options }) => options),
            ]),
          )
          .catch([]),
      }),
    )
    .catch([]),
})

type Settings = z.infer<typeof settings>

/** Asks something of the agent. */
type Send<T> = (agent: ClientContext) => Promise<T>

/**
 * Speaks with one agent, one request at a time. Failures are of {@link AcpChildError}. Its owner
 * calls `stop` on every path.
 */
export class Conversation {
  /** The request that was sent last. */
  method = 'initialize'
  readonly process: AgentProcess
  private readonly config: Config
  private authMethods: readonly string[] = []
  private isAuthenticated = false
  private initialized: Promise<void> | undefined

  /** Starts the agent of `config`, in the folder `cwd`. */
  constructor(config: Config, cwd: string) {
    const { command, args, env } = config
    this.config = config
    this.process = new AgentProcess({ command, args, cwd, env })
  }

  /** Ends the agent, and waits until it is gone. @throws AcpChildError `AGENT_FAILED` when some of it is not. */
  stop(): Promise<void> {
    const { disposeEofGraceMs: eofGraceMs, disposeGraceMs: termGraceMs } = this.config
    return this.process.stop({ eofGraceMs, termGraceMs })
  }

  /** The handshake, which is the same for every task. Each call gives the same promise. */
  initialize(): Promise<void> {
    this.initialized ??= this.limited(this.shakeHands())
    return this.initialized
  }

  /** Brings the agent to the point where it takes a prompt. */
  open(task: Task): Promise<ActiveSession> {
    return this.limited(this.openSession(task))
  }

  private async openSession({ cwd, lineage }: Task): Promise<ActiveSession> {
    await this.initialize()
    const { mode, model } = this.config
    const meta = { 'dsh/depth': lineage.depth, 'dsh/origin': lineage.origin }
    const request = { cwd, mcpServers: [], _meta: meta }
    const session = await this.askAuthenticated('session/new', (agent) =>
      agent.buildSession(request).start(),
    )
    const offered = settings.safeParse(session.newSessionResponse)
    if (!offered.success) {
      throw new AcpChildError('AGENT_FAILED', 'the agent answered session/new without a sessionId')
    }
    if (mode !== undefined) await this.setMode(offered.data, mode)
    if (model !== undefined) await this.setOption(offered.data, 'model', model)
    return session
  }

  /** Sends the prompt, and adds all that the agent says to the transcript. */
  async prompt(
    session: ActiveSession,
    prompt: string,
    transcript: Transcript,
  ): Promise<PromptResponse> {
    return this.askAuthenticated('session/prompt', async () => {
      // Its end comes out of `nextUpdate`, after all that came before.
      session.prompt(prompt).catch(() => {})
      for (;;) {
        const message = await session.nextUpdate()
        if (message.kind === 'stop') {
          await addTrailing(session, transcript)
          return message.response
        }
        transcript.add(message.update)
      }
    })
  }

  private async limited<T>(step: Promise<T>): Promise<T> {
    const { command, handshakeTimeoutMs } = this.config
    if (await within(handshakeTimeoutMs, step)) return step
    throw new AcpChildError(
      'HANDSHAKE_TIMEOUT',
      `the agent "${command}" gave no answer to ${this.method} within ${handshakeTimeoutMs} ms: a command that speaks the Agent Client Protocol on stdin and stdout is expected`,
    )
  }

  private async shakeHands(): Promise<void> {
    const response = await this.ask('initialize', (agent) =>
      agent.request('initialize', {
        protocolVersion,
        clientCapabilities: {},
        clientInfo: { name: 'dsh', version: '0.1.0' },
      }),
    )
    const answer = handshake.safeParse(response)
    if (!answer.success) {
      throw new AcpChildError('AGENT_FAILED', 'the agent answered initialize without an object')
    }
    const { protocolVersion: version, authMethods } = answer.data
    if (version !== protocolVersion) {
      throw new AcpChildError(
        'PROTOCOL_VERSION',
        `the agent speaks version ${JSON.stringify(version)} of the Agent Client Protocol, not ${protocolVersion}: another release of it may`,
      )
    }
    this.authMethods = authMethods.map(({ id }) => id)
  }

  private async setMode(offered: Settings, mode: string): Promise<void> {
    const modes = (offered.modes?.availableModes ?? []).map(({ id }) => id)
    if (!modes.includes(mode)) return this.setOption(offered, 'mode', mode, modes)
    const request = { sessionId: offered.sessionId, modeId: mode }
    await this.ask('session/set_mode', (agent) => agent.request('session/set_mode', request))
  }

  /** Sets the option that the agent offers under this category, or id. */
  private async setOption(
    { sessionId, configOptions }: Settings,
    category: 'mode' | 'model',
    value: string,
    alsoOffered: readonly string[] = [],
  ): Promise<void> {
    const option = configOptions.find((item) => item.category === category || item.id === category)
    const offered = (option?.options ?? []).flat().map((item) => item.value)
    if (option === undefined || !offered.includes(value)) {
      const known = [...new Set([...alsoOffered, ...offered])].join(', ') || 'none'
      throw new AcpChildError(
        'NOT_OFFERED',
        `the agent has no ${category} "${value}" (offered: ${known})`,
      )
    }
    const request = { sessionId, configId: option.id, value }
    await this.ask('session/set_config_option', (agent) =>
      agent.request('session/set_config_option', request),
    )
  }

  /** Asks; when the agent wants to be authenticated first, does that once and asks again. */
  private async askAuthenticated<T>(method: string, send: Send<T>): Promise<T> {
    this.method = method
    try {
      return await this.send(send)
    } catch (error) {
      if (!isAuthRequired(error)) throw await this.process.explain(method, error)
    }
    await this.authenticate()
    return this.ask(method, send)
  }

  private async authenticate(): Promise<void> {
    const { authMethod } = this.config
    if (
      authMethod === undefined ||
      this.isAuthenticated ||
      !this.authMethods.includes(authMethod)
    ) {
      const offered = this.authMethods.join(', ') || 'none'
      throw new AcpChildError(
        'AUTH_REQUIRED',
        `the agent wants to be authenticated: set authMethod (offered: ${offered}), or give what it needs in env`,
      )
    }
    this.isAuthenticated = true
    const request = { methodId: authMethod }
    await this.ask('authenticate', (agent) => agent.request('authenticate', request))
  }

  private async ask<T>(method: string, send: Send<T>): Promise<T> {
    this.method = method
    try {
      return await this.send(send)
    } catch (error) {
      throw await this.process.explain(method, error)
    }
  }

  private async send<T>(send: Send<T>): Promise<T> {
    const { agent } = await this.process.connection
    return send(agent)
  }
}

async function addTrailing(session: ActiveSession, transcript: Transcript): Promise<void> {
  for (;;) {
    const isSilent = transcript.output.length === 0
    // A connection that closes brings nothing more.
    const next = session.nextUpdate().catch(() => undefined)
    if (!(await within(isSilent ? quietWithoutTextMs : quietMs, next))) return
    const message = await next
    if (message?.kind !== 'session_update') return
    transcript.add(message.update)
  }
}

function isAuthRequired(error: unknown): boolean {
  return isRequestError(error) && error.code === authRequired
}
