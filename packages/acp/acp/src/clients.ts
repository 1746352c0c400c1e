/** Who is on the other side of a session, for plugins that use what the client offers. */
import type { AgentContext, ClientCapabilities, ToolCallContent } from '@agentclientprotocol/sdk'
import type { SessionId } from '@deepseek-ai/dsh-session'

/** The client in whose session an agent works. */
export interface AcpClient {
  /** The session as the client knows it: that of the agent itself, or of the one above it. */
  readonly sessionId: SessionId
  /** What the client said in `initialize`. */
  readonly capabilities: ClientCapabilities
  /** Sends a request to the client; rejects when the connection closes. */
  readonly request: AgentContext['request']
  /**
   * Shows something in a call until the call fails, in the place of its progress and its result;
   * calls that the client does not see are left alone. Settles when it is sent; never rejects.
   */
  readonly show: (callId: string, content: ToolCallContent) => Promise<void>
}

/** The clients that are connected, reached through `ctx.acpClients`. */
export interface AcpClients {
  /** Absent when the agent, and the agents above it, have no session of a client. */
  of(id: SessionId): AcpClient | undefined
}

/** Finds clients while there is a server to ask. */
export class ClientTable implements AcpClients {
  private readonly sources = new Set<(id: SessionId) => AcpClient | undefined>()

  of(id: SessionId): AcpClient | undefined {
    for (const source of this.sources) {
      const client = source(id)
      if (client !== undefined) return client
    }
    return undefined
  }

  /** @returns what takes the source back. */
  add(source: (id: SessionId) => AcpClient | undefined): () => void {
    const { sources } = this
    sources.add(source)
    return () => void sources.delete(source)
  }
}
