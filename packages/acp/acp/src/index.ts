/** Front end that serves the agents over the Agent Client Protocol on stdin and stdout. */
import type { Context } from '@deepseek-ai/cordis'
import type { FrontEnd } from '@deepseek-ai/dsh-app'
import z from '@deepseek-ai/schemastery'
import { type AcpClients, ClientTable } from './clients.ts'
import { serveAcp } from './serve.ts'

export type { AcpClient, AcpClients } from './clients.ts'
export * from './errors.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    acpClients: AcpClients
  }
}

export const name = 'acp'
export const inject = ['app', 'agents', 'llm', 'sessions', 'tools']

export interface Config {
  /** Tools whose calls, those of child agents included, run only when the client permits them. */
  ask: string[]
}

export const Config: z<Partial<Config>, Config> = z.object({
  ask: z.array(z.string()).default([]),
})

export function apply(ctx: Context, { ask }: Config): void {
  const { streams } = ctx.app
  const clients = new ClientTable()
  ctx.provide('acpClients', clients)
  const frontEnd: FrontEnd = {
    name: 'acp',
    serve: (request, control) => serveAcp(ctx, { ask, clients, streams, request, control }),
  }
  ctx.app.registerFrontEnd(frontEnd)
}
