/** Finds the client of an agent, if it has what is wanted. */
import type { ClientCapabilities } from '@agentclientprotocol/sdk'
import type { AcpClient, AcpClients } from '@deepseek-ai/dsh-acp'
import type { SessionId } from '@deepseek-ai/dsh-session'

/** What clients offer; a lack is told once. */
export class Offers {
  private readonly clients: AcpClients
  private readonly warn: (message: string) => void
  private readonly told = new Set<string>()

  constructor(clients: AcpClients, warn: (message: string) => void) {
    this.clients = clients
    this.warn = warn
  }

  /** The client that keeps the texts: one that only reads, or only writes, would part the two. */
  files(id: string | undefined): AcpClient | undefined {
    return this.find(
      id,
      'files',
      ({ fs }) => fs?.readTextFile === true && fs.writeTextFile === true,
    )
  }

  /** The client that runs the commands. */
  terminals(id: string | undefined): AcpClient | undefined {
    return this.find(id, 'terminals', ({ terminal }) => terminal === true)
  }

  private find(
    id: string | undefined,
    what: string,
    isOffered: (capabilities: ClientCapabilities) => boolean,
  ): AcpClient | undefined {
    const client = id === undefined ? undefined : this.clients.of(id as SessionId)
    if (client === undefined || isOffered(client.capabilities)) return client
    if (!this.told.has(what))
      this.warn(`the client offers no ${what}: those of this machine are used`)
    this.told.add(what)
    return undefined
  }
}
