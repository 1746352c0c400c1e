/** The protocol of one run: handshake, session, one prompt. */
import {
  type ActiveSession,
  type ClientContext,
  type InitializeResponse,
  methods,
  type PromptResponse,
  RequestError,
  type SessionConfigOption,
} from '@agentclientprotocol/sdk'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { AcpChildError } from './errors.ts'
import type { Transcript } from './transcript.ts'

const protocolVersion = 1
/** Source: the error codes of the protocol's schema. */
const authRequired = -32000
/** Some agents send the last chunks after the response: they get this long, in ms. */
const trailMs = 5

export interface ConversationOptions {
  readonly cwd: string
  readonly depth: number
  readonly authMethod?: string
  readonly model?: string
  readonly mode?: string
}

/**
 * Brings the agent to the point where it takes a prompt.
 * @throws AcpChildError `PROTOCOL_VERSION`, `AUTH_REQUIRED`, `NOT_OFFERED`, `AGENT_FAILED`.
 */
export async function openSession(
  agent: ClientContext,
  options: ConversationOptions,
): Promise<ActiveSession> {
  const handshake = await asking('initialize', () =>
    agent.request(methods.agent.initialize, {
      protocolVersion,
      clientCapabilities: {},
      clientInfo: { name: 'dsh', version: '0.1.0' },
    }),
  )
  if (handshake?.protocolVersion !== protocolVersion) {
    throw new AcpChildError(
      'PROTOCOL_VERSION',
      `the agent speaks protocol version "${handshake?.protocolVersion}", supported is ${protocolVersion}`,
    )
  }
  const session = await newSession(agent, handshake, options)
  await setMode(agent, session, options.mode)
  await setModel(agent, session, options.model)
  return session
}

/**
 * Sends the prompt, and adds all that the agent says to the transcript.
 * @throws AcpChildError `AGENT_FAILED`.
 */
export async function runPrompt(
  session: ActiveSession,
  prompt: string,
  transcript: Transcript,
): Promise<PromptResponse> {
  return asking('session/prompt', async () => {
    // Its failure also comes out of `nextUpdate`.
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

async function addTrailing(session: ActiveSession, transcript: Transcript): Promise<void> {
  for (;;) {
    const next = session.nextUpdate()
    // When nothing comes, disposing the session rejects it.
    next.catch(() => {})
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, trailMs)
    const message = await Promise.race([next, late.promise])
    clearTimeout(timer)
    if (message === undefined || message.kind === 'stop') return
    transcript.add(message.update)
  }
}

async function newSession(
  agent: ClientContext,
  { authMethods }: InitializeResponse,
  { cwd, depth, authMethod }: ConversationOptions,
): Promise<ActiveSession> {
  const start = (): Promise<ActiveSession> =>
    agent.buildSession({ cwd, mcpServers: [], _meta: { 'dsh/depth': depth } }).start()
  try {
    return await start()
  } catch (error) {
    if (!isAuthRequired(error)) throw failed('session/new', error)
  }
  const offered = (authMethods ?? []).map(({ id }) => id)
  if (authMethod === undefined || !offered.includes(authMethod)) {
    throw new AcpChildError(
      'AUTH_REQUIRED',
      `the agent wants to be authenticated: set authMethod to one of ${offered.join(', ') || 'none that it offers'}, or give its key in env`,
    )
  }
  await asking('authenticate', () =>
    agent.request(methods.agent.authenticate, { methodId: authMethod }),
  )
  return asking('session/new', start)
}

async function setMode(
  agent: ClientContext,
  { sessionId, modes, newSessionResponse }: ActiveSession,
  mode: string | undefined,
): Promise<void> {
  if (mode === undefined) return
  const offered = (modes?.availableModes ?? []).map(({ id }) => id)
  if (offered.includes(mode)) {
    await asking('session/set_mode', () =>
      agent.request(methods.agent.session.setMode, { sessionId, modeId: mode }),
    )
    return
  }
  await setOption(agent, sessionId, newSessionResponse.configOptions ?? [], 'mode', mode, offered)
}

async function setModel(
  agent: ClientContext,
  { sessionId, newSessionResponse }: ActiveSession,
  model: string | undefined,
): Promise<void> {
  if (model === undefined) return
  await setOption(agent, sessionId, newSessionResponse.configOptions ?? [], 'model', model, [])
}

/** Sets a select option that the agent offers under this category or id. */
async function setOption(
  agent: ClientContext,
  sessionId: string,
  options: readonly SessionConfigOption[],
  category: 'mode' | 'model',
  value: string,
  alsoOffered: readonly string[],
): Promise<void> {
  const option = options.find((item) => item.category === category || item.id === category)
  const offered = option?.type === 'select' ? option.options.flatMap(valuesOf) : []
  if (option === undefined || !offered.includes(value)) {
    const known = [...alsoOffered, ...offered].join(', ') || 'none'
    throw new AcpChildError(
      'NOT_OFFERED',
      `the agent has no ${category} "${value}" (offered: ${known})`,
    )
  }
  await asking('session/set_config_option', () =>
    agent.request(methods.agent.session.setConfigOption, { sessionId, configId: option.id, value }),
  )
}

type SelectOption = Extract<SessionConfigOption, { type: 'select' }>['options'][number]

function valuesOf(option: SelectOption): string[] {
  return 'options' in option ? option.options.map(({ value }) => value) : [option.value]
}

async function asking<T>(method: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw failed(method, error)
  }
}

function failed(method: string, error: unknown): AcpChildError {
  const text = `the agent failed at ${method}: ${messageOf(error)}${detailsOf(error)}`
  return new AcpChildError('AGENT_FAILED', text, { cause: error })
}

/** Agents put what matters into the data of an internal error. */
function detailsOf(error: unknown): string {
  if (!(error instanceof RequestError) || error.data === undefined) return ''
  const details = typeof error.data === 'string' ? error.data : JSON.stringify(error.data)
  return ` (${details.slice(0, 1000)})`
}

function isAuthRequired(error: unknown): boolean {
  return error instanceof RequestError && error.code === authRequired
}
