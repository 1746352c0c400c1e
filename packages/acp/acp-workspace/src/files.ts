/** The texts of a session as its editor has them, unsaved buffers included. */
import { RequestError } from '@agentclientprotocol/sdk'
import type { AcpClient } from '@deepseek-ai/dsh-acp'
import type { TextFiles } from '@deepseek-ai/dsh-fs-local'
import { z } from 'zod'
import { ask } from './ask.ts'

const text = z.object({ content: z.string() })
/** Clients answer with an empty object, or with nothing. */
const nothing = z.unknown()

/** Source: the error codes of the protocol. */
const resourceNotFound = -32002

/** Loads and saves through a client. */
export function clientFiles(client: AcpClient): TextFiles {
  return {
    load: async (path, signal) => {
      try {
        const method = 'fs/read_text_file'
        const { content } = await ask(client, { method, params: { path }, answer: text, signal })
        return content
      } catch (error) {
        if (isNotFound(error)) return undefined
        throw error
      }
    },
    save: async (path, content, signal) => {
      const params = { path, content }
      await ask(client, { method: 'fs/write_text_file', params, answer: nothing, signal })
    },
  }
}

function isNotFound(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { cause } = error
  return cause instanceof RequestError && cause.code === resourceNotFound
}
