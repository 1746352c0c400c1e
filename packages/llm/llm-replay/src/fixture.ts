/** The fixture: what each session of a run was answered, keyed so that interleaving does not matter. */
import { readdirSync, readFileSync } from 'node:fs'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { z } from 'zod'
import { ReplayError } from './errors.ts'

const metadata = z.record(z.string(), z.json()).optional()

const block = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('reasoning'), text: z.string(), metadata }),
  z.strictObject({
    type: z.literal('tool-call'),
    callId: z.string(),
    name: z.string(),
    input: z.json(),
    metadata,
  }),
])

const reply = z.strictObject({
  content: z.array(block),
  model: z.string(),
  usage: z.strictObject({
    inputTokens: z.number(),
    outputTokens: z.number(),
    cachedInputTokens: z.number().optional(),
    reasoningTokens: z.number().optional(),
  }),
  finish: z.enum(['stop', 'tool-calls', 'max-tokens', 'refusal', 'aborted', 'error']),
  error: z.strictObject({ code: z.string(), message: z.string() }).optional(),
})

const fixture = z.strictObject({
  version: z.literal(1),
  sessions: z.record(z.string(), z.array(reply)),
})

/** One recorded reply; an `aborted` one is replayed up to where it was cut, and then waits for the cancel. */
export type RecordedReply = z.infer<typeof reply>

/** Replies by session key, in the order in which the session asked. */
export type Fixture = z.infer<typeof fixture>

/**
 * Reads a file; or, of a path with a slash at its end, all files of the folder as one.
 * @throws ReplayError `INVALID_FIXTURE` naming the file and what is wrong.
 */
export function readFixture(path: string): Fixture {
  if (!path.endsWith('/')) return readFile(path)
  const sessions: Fixture['sessions'] = {}
  for (const name of filesIn(path)) Object.assign(sessions, readFile(`${path}${name}`).sessions)
  return { version: 1, sessions }
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.json'))
  } catch (error) {
    throw invalid(folder, messageOf(error), error)
  }
}

function readFile(path: string): Fixture {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw invalid(path, messageOf(error), error)
  }
  const parsed = fixture.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw invalid(path, `${issue?.path.join('.') || 'it'}: ${issue?.message}`)
}

function invalid(path: string, why: string, cause?: unknown): ReplayError {
  return new ReplayError('INVALID_FIXTURE', `cannot read the fixture "${path}": ${why}`, { cause })
}
