/** Structured output: a private tool through which the child hands in a value that fits a schema. */
import { createRequire } from 'node:module'
import { type JsonObject, type JsonValue, messageOf } from '@deepseek-ai/dsh-llm'
import { freezeJson } from '@deepseek-ai/dsh-session'
import { SubagentError } from '@deepseek-ai/dsh-subagent'
import { errorResult, type Tool, type ToolResult } from '@deepseek-ai/dsh-tools'
import type { Ajv2020 } from 'ajv/dist/2020.js'
import { z } from 'zod'

const toolName = 'structured_output'
const maxAttempts = 3

/** Text that goes with the prompt, so that the child knows how to answer. */
export const structuredHint = `Give your final answer by calling the tool ${toolName} once; its arguments are the answer.`

/** What the child has handed in. */
export class StructuredOutput {
  readonly tool: Tool
  private readonly problemsOf: (value: JsonValue) => string | undefined
  private attempts = 0
  private accepted: JsonValue | undefined
  private lastProblem: string | undefined

  /** @throws SubagentError `INVALID_REQUEST` when the schema is broken or not object-rooted. */
  constructor(schema: JsonObject) {
    this.problemsOf = compile(schema)
    this.tool = {
      name: toolName,
      description:
        'Hands in the final answer. Call it exactly once, when the work is done: it ends the task.',
      // Takes anything, so that each value, also text that is no JSON, counts as an attempt.
      parameters: z.any() as unknown as z.ZodObject,
      inputSchema: schema,
      execute: async (value) => this.take(value as JsonValue),
    }
  }

  /** The first value that fits the schema. */
  get value(): JsonValue | undefined {
    return this.accepted
  }

  /** Why there is no value, for a person. */
  get problem(): string {
    return this.lastProblem === undefined
      ? `the child finished without calling ${toolName}`
      : `the child gave no value that fits the schema in ${this.attempts} attempts: ${this.lastProblem}`
  }

  private take(value: JsonValue): ToolResult {
    this.attempts += 1
    const problem = this.problemsOf(value)
    if (problem === undefined) {
      this.accepted = freezeJson(value)
      return { content: [{ type: 'text', text: 'accepted' }], isError: false, endsTurn: true }
    }
    this.lastProblem = problem
    const left = Math.max(0, maxAttempts - this.attempts)
    const text = `the value does not fit the schema: ${problem}\nattempts left: ${left}`
    return { ...errorResult('INVALID_ARGUMENTS', text), endsTurn: left === 0 }
  }
}

function compile(schema: JsonObject): (value: JsonValue) => string | undefined {
  const { $schema: _, ...body } = schema
  if (body['type'] !== 'object') {
    throw invalidSchema(`its root must have type "object", not ${JSON.stringify(body['type'])}`)
  }
  try {
    const ajv = new (loadAjv())({ allErrors: true, strict: false, validateFormats: false })
    const validate = ajv.compile(body)
    return (value) =>
      validate(value) ? undefined : problemOf(ajv.errorsText(validate.errors, { dataVar: 'value' }))
  } catch (error) {
    throw invalidSchema(messageOf(error))
  }
}

/** How much of what is wrong is told, in UTF-16 code units: a value may be wrong in every place. */
const maxProblemLength = 1000

function problemOf(text: string): string {
  return text.length <= maxProblemLength
    ? text
    : `${text.slice(0, maxProblemLength).toWellFormed()}…`
}

/** Loaded when the first schema comes: most deployments never need it, and a start is synchronous. */
function loadAjv(): typeof Ajv2020 {
  const require = createRequire(import.meta.url)
  return (require('ajv/dist/2020.js') as { Ajv2020: typeof Ajv2020 }).Ajv2020
}

function invalidSchema(why: string): SubagentError {
  return new SubagentError('INVALID_REQUEST', `outputSchema is not usable: ${why}`)
}
