/** What a test says to the scripted model server, and what each wire protocol must answer. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FinishReason, JsonObject, JsonValue, Usage } from '@deepseek-ai/dsh-llm'

/** A tool call of a reply. */
export interface ServedCall {
  readonly name: string
  /** A text is sent as it is, so that it need not be JSON. Default: `{}`. */
  readonly input?: JsonValue
  /** Default: `call-<request>-<position>`. */
  readonly callId?: string
  /** Google only: the thought signature of the call. */
  readonly signature?: string
}

/** One reply of the server; a text stands for `{ text }`. */
export interface ServedReply {
  readonly reasoning?: string
  /** Anthropic: the signature of the reasoning; OpenAI: its encrypted content. */
  readonly signature?: string
  readonly text?: string
  /** Streams these, each as an event of its own, instead of `text`. */
  readonly deltas?: readonly string[]
  readonly calls?: readonly ServedCall[]
  /** Default: `tool-calls` when there are calls, else `stop`. */
  readonly finish?: Exclude<FinishReason, 'aborted' | 'error'>
  readonly usage?: Usage
  /** Waits for this, or for the client to go, after the text. */
  readonly until?: Promise<unknown>
  readonly fault?: ServedFault
}

/** How a reply goes wrong, instead of being finished. */
export type ServedFault =
  | {
      /** An HTTP status in the place of a stream. */
      readonly status: number
      /** Told as the protocol tells errors. */
      readonly message?: string
      /** Sent as it is, instead of `message`. */
      readonly body?: JsonValue
      readonly headers?: Readonly<Record<string, string>>
    }
  | {
      /**
       * `disconnect` cuts the connection, `end` closes it in peace but without a finish, `malformed`
       * sends an event that is no JSON, `error` one that tells of an overload, and `stall` keeps
       * silent until the server is released or closed or the client goes.
       */
      readonly kind: 'disconnect' | 'end' | 'malformed' | 'error' | 'stall'
      /** What has been sent by then. Default: `text`, with the reasoning. */
      readonly after?: 'nothing' | 'headers' | 'text'
    }

/** A message as a test looks at it, whatever the protocol. */
export interface ReceivedMessage {
  readonly role: 'user' | 'assistant' | 'tool'
  /** All text of the message; of a tool message, the results. */
  readonly text: string
}

/** A request that the server got. */
export interface ReceivedRequest {
  /** Counts all requests of the server from 0. */
  readonly index: number
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: JsonObject
  readonly model: string
  readonly system: string
  readonly messages: readonly ReceivedMessage[]
  /** Names of the offered tools. */
  readonly tools: readonly string[]
  /** Whether the client went away before the reply was complete. */
  readonly isAbandoned: boolean
}

/** Answers a request; a list answers in order. */
export type ServedAnswer = (
  request: ReceivedRequest,
) => string | ServedReply | Promise<string | ServedReply>

/** A {@link ServedCall} with everything filled in. */
export interface CompleteCall {
  readonly name: string
  readonly callId: string
  /** The input as JSON text, or as the test wrote it. */
  readonly input: string
  readonly signature?: string
}

/** A {@link ServedReply} with everything filled in that an encoder needs. */
export interface CompleteReply {
  readonly id: string
  readonly model: string
  readonly reasoning?: string
  readonly signature?: string
  readonly deltas: readonly string[]
  readonly calls: readonly CompleteCall[]
  readonly finish: Exclude<FinishReason, 'aborted' | 'error'>
  readonly usage: Usage
}

/** What a protocol makes of a request's body. */
export type ReadRequest = Pick<ReceivedRequest, 'model' | 'system' | 'messages' | 'tools'>

/** One protocol: how a request is read and a reply is written. */
export interface WireProtocol {
  /** Whether a path is this protocol's. */
  serves(path: string): boolean
  read(body: JsonObject, path: string): ReadRequest
  /** The events up to and including the text. */
  head(reply: CompleteReply): string[]
  /** The events after the text: calls, usage, finish. */
  tail(reply: CompleteReply): string[]
  /** An error in the place of a reply. */
  failure(status: number, message: string): JsonObject
  /** An overload, told inside the stream. */
  overload(): string
}
