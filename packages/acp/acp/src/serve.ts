/** Ties a connection to the streams of the command and to the events of the context. */
import { readFileSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { MessageTooLargeError, ndJsonStream, type Stream } from '@agentclientprotocol/sdk'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { AppRequest, AppStreams, FrontEndControl } from '@deepseek-ai/dsh-app'
import type { FsService } from '@deepseek-ai/dsh-fs-local'
import type { SubagentRunEnd } from '@deepseek-ai/dsh-subagent'
import type { ClientTable } from './clients.ts'
import { AcpError } from './errors.ts'
import { AcpServer } from './server.ts'

/** One call of the front end's `serve`. */
export interface Serving {
  /** Names of the tools whose calls need the client's permission. */
  readonly ask: readonly string[]
  readonly clients: ClientTable
  readonly streams: AppStreams
  readonly request: AppRequest
  readonly control: FrontEndControl
}

/**
 * Serves until the client closes stdin or the command must end; all its agents are gone then.
 * @throws AcpError `UNSUPPORTED_REQUEST`, `UNKNOWN_TOOL`.
 */
export async function serveAcp(
  ctx: Context,
  { ask, clients, streams, request, control }: Serving,
): Promise<number> {
  refuseUnsupported(request)
  const { logger } = ctx
  const server = new AcpServer({
    agents: ctx.agents.registry,
    models: ctx.llm.registry,
    sessions: ctx.sessions.table,
    version: ownVersion(),
    asks: checkedAsks(ctx.tools.table.names(), ask),
    model: request.model,
    readText: (agent, path, signal) => textOf(ctx.get('fs'), agent, path, signal),
    warn: (message) => logger.warn(message),
    report: (error) => logger.error(error),
  })
  if (streams.stdin.isTTY) streams.stderr.write(forPeople)
  const unfollow = follow(ctx, server)
  const unlist = clients.add((id) => server.clientOf(id))
  const connection = server.app().connect(streamOf(streams, (message) => logger.error(message)))
  const onAbort = (): void => connection.close()
  if (control.signal.aborted) onAbort()
  control.signal.addEventListener('abort', onAbort, { once: true })
  try {
    await connection.closed
    await server.dispose()
  } finally {
    control.signal.removeEventListener('abort', onAbort)
    unfollow()
    unlist()
  }
  const { reason } = connection.signal
  if (!(reason instanceof MessageTooLargeError)) return 0
  logger.error(reason)
  return 1
}

const forPeople = 'serving the Agent Client Protocol: a client speaks it on stdin and stdout\n'

function refuseUnsupported({ prompt, resume }: AppRequest): void {
  const option = prompt !== undefined ? '-p' : resume !== undefined ? '--resume' : undefined
  if (option === undefined) return
  throw new AcpError(
    'UNSUPPORTED_REQUEST',
    `${option} cannot go with a front end that serves the Agent Client Protocol: its client gives prompts and loads sessions`,
  )
}

/** A name that is misspelt would leave its tool unguarded. */
function checkedAsks(known: readonly string[], ask: readonly string[]): ReadonlySet<string> {
  for (const tool of ask) {
    if (known.includes(tool)) continue
    const names = known.join(', ') || 'none'
    throw new AcpError(
      'UNKNOWN_TOOL',
      `config key "ask" names the unknown tool "${tool}" (registered: ${names})`,
    )
  }
  return new Set(ask)
}

function ownVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

async function textOf(
  fs: FsService | undefined,
  agent: Agent,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    return await fs?.readText(agent, path, signal)
  } catch {
    // No such file, or one that the tool will refuse.
    return undefined
  }
}

/** Hands what happens to the sessions that it belongs to, until the returned function is called. */
function follow(ctx: Context, server: AcpServer): () => void {
  const undo = [
    ctx.on('agent/delta', ({ agent, kind, text }) =>
      server.get(agent.id)?.narrator.delta(kind, text),
    ),
    ctx.on('session/event', ({ session, event }) => server.get(session.id)?.onEvent(event)),
    ctx.on('tools/progress', ({ call, progress: { text } }) => {
      if (text !== undefined) server.get(call.agent.id)?.narrator.progress(call.callId, text)
    }),
    ctx.on('subagent/end', ({ parent, usage }: SubagentRunEnd) => {
      if (usage !== undefined) server.get(parent.id)?.addUsage(usage)
    }),
    ctx.on('tools/execute', (call, next) => {
      const session = server.sessionOf(call.agent.id)
      return session === undefined ? next() : session.gate.pass(call, next)
    }),
  ]
  return () => {
    for (const off of undo) off()
  }
}

function streamOf({ stdin, stdout }: AppStreams, warn: (message: string) => void): Stream {
  // The web stream types of Node and of the SDK differ in name only.
  const input = Readable.toWeb(stdin) as ReadableStream<Uint8Array>
  const { readable, writable } = ndJsonStream(Writable.toWeb(stdout), input)
  return { readable: readable.pipeThrough(framesWithIds(warn)), writable }
}

type Frame = Stream['readable'] extends ReadableStream<infer T> ? T : never

/** The SDK ends the connection over an id that is no id, and with it every session. */
function framesWithIds(warn: (message: string) => void): TransformStream<Frame, Frame> {
  return new TransformStream({
    transform: (frame, controller) => {
      const id: unknown = 'id' in frame ? frame.id : undefined
      if (typeof id !== 'object' || id === null) controller.enqueue(frame)
      else warn('dropped a frame of the client: its id is neither a text nor a number')
    },
  })
}
