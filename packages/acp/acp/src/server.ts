/** Serves one client: the methods of the protocol, and the sessions that it opened. */
import {
  agent as agentApp,
  type AgentApp,
  type AgentContext,
  type ClientCapabilities,
  type InitializeRequest,
  type InitializeResponse,
  methods,
  type NewSessionRequest,
  type NewSessionResponse,
  PROTOCOL_VERSION,
  type PromptRequest,
  type PromptResponse,
  RequestError,
  type ResumeSessionRequest,
  type SessionConfigOption,
  type SetSessionConfigOptionRequest,
} from '@agentclientprotocol/sdk'
import type { AgentHandle, AgentRegistry } from '@deepseek-ai/dsh-agent'
import type { ModelRegistry } from '@deepseek-ai/dsh-llm'
import type { SessionId, SessionTable } from '@deepseek-ai/dsh-session'
import type { AcpClient } from './clients.ts'
import { fromAcpPrompt } from './content.ts'
import { invalidParams, invalidRequest, told } from './errors.ts'
import type { ReadText } from './gate.ts'
import { pageOf } from './listing.ts'
import { AcpSession } from './session.ts'
import { lineageIn, modelOption, tellsDepth, workspaceOf } from './setup.ts'

/** The plain registries that a server works with, resolved once, and what the config says. */
export interface ServerOptions {
  readonly agents: AgentRegistry
  readonly models: ModelRegistry
  readonly sessions: SessionTable
  readonly version: string
  /** Tools whose calls wait for a permission. */
  readonly asks: ReadonlySet<string>
  /** Of new sessions; absent: the agents' default. */
  readonly model?: string | undefined
  readonly readText: ReadText
  readonly warn: (message: string) => void
  readonly report: (error: unknown) => void
}

type Setup = Pick<ResumeSessionRequest, 'cwd' | 'mcpServers' | 'additionalDirectories'>
/** What only a session store makes possible. */
interface Offer {
  readonly load: boolean
  readonly list: boolean
}

type ConfigOptions = { configOptions: SessionConfigOption[] }

/** The sessions of one connection, and how the client reaches them. */
export class AcpServer {
  private readonly options: ServerOptions
  private readonly sessions = new Map<string, AcpSession>()
  private capabilities: ClientCapabilities = {}
  private isClosed = false

  constructor(options: ServerOptions) {
    this.options = options
  }

  /** The session in which an agent works: its own, or that of the agent above it. */
  sessionOf(id: SessionId): AcpSession | undefined {
    const session = this.sessions.get(id)
    if (session !== undefined) return session
    const parent = this.options.sessions.get(id)?.header.parentSession
    return parent === undefined ? undefined : this.sessionOf(parent)
  }

  /** The session of exactly this agent. */
  get(id: SessionId): AcpSession | undefined {
    return this.sessions.get(id)
  }

  /** The client of the session in which an agent works. */
  clientOf(id: SessionId): AcpClient | undefined {
    const session = this.sessionOf(id)
    if (session === undefined) return undefined
    const { request } = session
    return {
      sessionId: session.id,
      capabilities: this.capabilities,
      request,
      // The client does not see the calls of children.
      show: async (callId, content) => {
        if (session.id === id) await session.show(callId, content)
      },
    }
  }

  /** Cancels and disposes every agent of the client, also those that are just being opened. */
  async dispose(): Promise<void> {
    this.isClosed = true
    await Promise.all(Array.from(this.sessions.values(), (session) => session.dispose()))
    this.sessions.clear()
  }

  /** The protocol, to be connected once; what needs a store is offered when there is one by then. */
  app(): AgentApp {
    const { agent } = methods
    const { report, sessions } = this.options
    const offer: Offer = { load: sessions.hasStore, list: sessions.canListStored }
    const app = agentApp({ name: 'dsh' })
      .onRequest(agent.initialize, ({ params }) => this.initialize(params, offer))
      .onRequest(
        agent.session.new,
        told(report, (request, client) => this.create(request, client)),
      )
      .onRequest(
        agent.session.prompt,
        told(report, (request, _, signal) => this.prompt(request, signal)),
      )
      .onRequest(
        agent.session.close,
        told(report, ({ sessionId }) => this.close(sessionId)),
      )
      .onRequest(
        agent.session.setConfigOption,
        told(report, (request) => this.configure(request)),
      )
      .onNotification(agent.session.cancel, ({ params }) =>
        this.sessions.get(params.sessionId)?.cancel(),
      )
    if (offer.load) this.serveLoading(app)
    if (offer.list) {
      app.onRequest(
        agent.session.list,
        told(report, async (request) => pageOf(await sessions.listStored(), request)),
      )
    }
    return app
  }

  private serveLoading(app: AgentApp): void {
    const { session } = methods.agent
    const { report } = this.options
    app
      .onRequest(
        session.resume,
        told(report, (request, client) => this.resume(request, client)),
      )
      .onRequest(
        session.load,
        told(report, async (request, client) => {
          const configured = await this.resume(request, client)
          await this.require(request.sessionId).replay()
          return configured
        }),
      )
  }

  private initialize(
    { clientCapabilities = {} }: InitializeRequest,
    offer: Offer,
  ): InitializeResponse {
    this.capabilities = clientCapabilities
    const { models, version } = this.options
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'dsh', version },
      authMethods: [],
      agentCapabilities: {
        loadSession: offer.load,
        promptCapabilities: {
          image: models.list().some(({ images }) => images === true),
          embeddedContext: true,
        },
        sessionCapabilities: {
          close: {},
          ...(offer.load && { resume: {} }),
          ...(offer.list && { list: {} }),
        },
      },
    }
  }

  private async create(
    request: NewSessionRequest,
    client: AgentContext,
  ): Promise<NewSessionResponse> {
    const { agents, model } = this.options
    const cwd = await this.checked(request)
    const lineage = lineageIn(request)
    const handle = agents.create({
      cwd,
      ...lineage,
      options: { subagentDepth: lineage.delegationDepth, ...(model !== undefined && { model }) },
    })
    // Only another dsh says a depth, and it alone can read the tokens: other clients show a window.
    const session = await this.admit(handle, client, tellsDepth(request))
    return { sessionId: session.id, ...this.configOf(session) }
  }

  private async resume(
    request: ResumeSessionRequest,
    client: AgentContext,
  ): Promise<ConfigOptions> {
    const { sessionId } = request
    const cwd = await this.checked(request)
    if (this.sessions.has(sessionId)) throw invalidRequest(`session "${sessionId}" is open already`)
    const handle = await this.options.agents.resume(sessionId as SessionId)
    if (handle.agent.cwd !== cwd) {
      await handle.dispose()
      throw invalidParams(`session "${sessionId}" works in "${handle.agent.cwd}", not in "${cwd}"`)
    }
    return this.configOf(await this.admit(handle, client))
  }

  private async prompt(
    { sessionId, prompt }: PromptRequest,
    signal: AbortSignal,
  ): Promise<PromptResponse> {
    const session = this.require(sessionId)
    const model = this.options.models.get(session.agent.model)
    return session.prompt(fromAcpPrompt(prompt, model), signal)
  }

  private async close(sessionId: string): Promise<void> {
    await this.require(sessionId).dispose()
    this.sessions.delete(sessionId)
  }

  private async configure(request: SetSessionConfigOptionRequest): Promise<ConfigOptions> {
    const { sessionId, configId, value } = request
    const session = this.require(sessionId)
    if (configId !== 'model') throw invalidParams(`no option "${configId}" (offered: model)`)
    if (typeof value !== 'string') throw invalidParams('option "model" takes the name of a model')
    session.agent.setModel(value)
    return this.configOf(session)
  }

  private configOf({ agent }: AcpSession): ConfigOptions {
    return { configOptions: [modelOption(this.options.models.list(), agent.model)] }
  }

  private require(sessionId: string): AcpSession {
    const session = this.sessions.get(sessionId)
    if (session === undefined) throw RequestError.sessionNotFound(sessionId)
    return session
  }

  private checked({ cwd, mcpServers = [], additionalDirectories = [] }: Setup): Promise<string> {
    if (additionalDirectories.length > 0) {
      throw invalidParams('additionalDirectories are not supported: leave them out')
    }
    if (mcpServers.length > 0) {
      const names = mcpServers.map(({ name }) => `"${name}"`).join(', ')
      this.options.warn(`MCP servers are not supported, so these are not connected: ${names}`)
    }
    return workspaceOf(cwd)
  }

  private async admit(
    handle: AgentHandle,
    client: AgentContext,
    tellsUsage = false,
  ): Promise<AcpSession> {
    if (this.isClosed) {
      await handle.dispose()
      throw invalidRequest('the connection is closed')
    }
    const { asks, readText } = this.options
    const sessionId = handle.agent.id
    const session = new AcpSession({
      handle,
      request: client.request.bind(client),
      asks,
      readText,
      tellsUsage,
      send: (update) => client.notify(methods.client.session.update, { sessionId, update }),
      ask: (toolCall, options, cancellationSignal) =>
        client.request(
          methods.client.session.requestPermission,
          { sessionId, toolCall, options },
          { cancellationSignal, stopWaitingOnCancel: true },
        ),
    })
    this.sessions.set(sessionId, session)
    return session
  }
}
