/** Playbooks: read from a file or from the config, checked in full, and made ready to answer. */
import { readFileSync } from 'node:fs'
import { load, JSON_SCHEMA, YAMLException } from 'js-yaml'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { z } from 'zod'
import { ScriptError } from './errors.ts'
import type { When } from './rule.ts'
import { compileTemplate, problemOf, type Template } from './template.ts'

/** Conditions, and the reply to a request for which they hold. */
export interface Rule {
  readonly when: When
  readonly reply: Template<Reply>
}

/** Rules in the order in which they are tried. */
export interface Playbook {
  /** What people call it: the path of its file, or that it is in the config. */
  readonly source: string
  readonly rules: readonly Rule[]
}

/** What the model answers. */
export type Reply = z.output<typeof replySchema>

const pattern = z.string().transform((source, context) => {
  try {
    return new RegExp(source, 'u')
  } catch (error) {
    context.addIssue({ code: 'custom', message: messageOf(error), input: source })
    return z.NEVER
  }
})
const toolName = z.string().regex(/^[\w-]{1,64}$/, 'must be the name of a tool')
const tokens = z.int().nonnegative()

const whenSchema = closed({
  user: pattern.optional(),
  system: pattern.optional(),
  result: pattern.optional(),
  tool: toolName.optional(),
  step: z.int().nonnegative().optional(),
  turn: z.int().min(1).optional(),
  offers: toolName.optional(),
  lacks: toolName.optional(),
})

const replySchema = closed({
  reasoning: z.string().optional(),
  text: z.string().optional(),
  calls: z
    .array(closed({ name: toolName, input: z.json().default({}) }))
    .min(1)
    .optional(),
  finish: z.enum(['stop', 'tool-calls', 'max-tokens', 'refusal']).optional(),
  usage: closed({
    inputTokens: tokens,
    outputTokens: tokens,
    cachedInputTokens: tokens.optional(),
    reasoningTokens: tokens.optional(),
  }).optional(),
  error: closed({
    code: z.string().regex(/^[A-Z][A-Z0-9_]*$/, 'must be a code such as MODEL_UNAVAILABLE'),
    message: z.string(),
  }).optional(),
  stall: z.literal(true).optional(),
  chunkSize: z.int().min(1).optional(),
  delayMs: z.int().nonnegative().max(60_000).optional(),
}).superRefine((reply, context) => {
  if (!answers.some((key) => reply[key] !== undefined)) {
    context.addIssue({
      code: 'custom',
      message: `needs one of ${answers.join(', ')}`,
      input: reply,
    })
  }
  for (const [key, others] of Object.entries(exclusive)) {
    if (reply[key as keyof Reply] === undefined) continue
    const other = others.find((name) => reply[name] !== undefined)
    if (other === undefined) continue
    context.addIssue({ code: 'custom', path: [other], message: `is never reached after "${key}"` })
  }
})

const answers = ['reasoning', 'text', 'calls', 'finish', 'error', 'stall'] as const
const exclusive = {
  stall: ['calls', 'usage', 'finish', 'error'],
  error: ['finish'],
} as const

const ruleSchema = closed({ when: whenSchema.default({}), reply: replySchema })
  .superRefine(({ when, reply }, context) => {
    for (const { path, text } of stringsIn(reply, ['reply'])) {
      const problem = problemOf(text, when)
      if (problem !== undefined) context.addIssue({ code: 'custom', path, message: problem })
    }
  })
  .transform(({ when, reply }): Rule => ({ when, reply: compileTemplate(reply) }))

/** Reads a yml or json file. @throws ScriptError `INVALID_PLAYBOOK` naming file, rule, key and value. */
export function readPlaybook(path: string): Playbook {
  const source = `playbook "${path}"`
  return parsePlaybook(source, parseFile(source, path))
}

/** Checks a list of rules. @throws ScriptError `INVALID_PLAYBOOK` naming rule, key and value. */
export function parsePlaybook(source: string, data: unknown): Playbook {
  if (!Array.isArray(data) || data.length === 0) {
    throw invalid(`${source} must be a list of rules, not ${brief(data)}`)
  }
  return {
    source,
    rules: data.map((item, index) => parseRule(`${source}, rule ${index + 1}`, item)),
  }
}

function parseFile(source: string, path: string): unknown {
  try {
    // JSON is read as YAML, which contains it: errors then have a line in both.
    return load(readFileSync(path, 'utf8'), { schema: JSON_SCHEMA })
  } catch (error) {
    if (!(error instanceof YAMLException)) {
      throw invalid(`cannot read ${source}: ${messageOf(error)}`)
    }
    const { reason, mark } = error
    const at = mark === undefined ? '' : `, line ${mark.line + 1}, column ${mark.column + 1}`
    throw invalid(`${source}${at}: ${reason}`)
  }
}

function parseRule(where: string, data: unknown): Rule {
  const { success, data: rule, error } = ruleSchema.safeParse(data)
  if (success) return rule
  const [issue] = error.issues
  const path = issue?.path ?? []
  const value = path.reduce<unknown>(
    (item, key) => (item as Record<PropertyKey, unknown>)?.[key],
    data,
  )
  const key = path.length === 0 ? '' : ` "${path.join('.')}"`
  const problem = issue?.message.replace(/^Invalid input: e/, 'e')
  throw invalid(`${where}${key}: ${problem}; it is ${brief(value)}`)
}

/** An object without any other key; the refusal lists those that there are. */
function closed<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const known = Object.keys(shape).join(', ')
  return z.strictObject(shape, {
    error: ({ code, keys }) =>
      code === 'unrecognized_keys'
        ? `unknown key "${keys.join('", "')}" (known: ${known})`
        : undefined,
  })
}

function* stringsIn(
  value: unknown,
  path: PropertyKey[],
): Generator<{ readonly path: PropertyKey[]; readonly text: string }> {
  if (typeof value === 'string') yield { path, text: value }
  if (typeof value !== 'object' || value === null) return
  for (const [key, item] of Object.entries(value)) yield* stringsIn(item, [...path, key])
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  return text.length > 120 ? `${text.slice(0, 120).toWellFormed()}…` : text
}

function invalid(message: string): ScriptError {
  return new ScriptError('INVALID_PLAYBOOK', message)
}
