/** What is told of a child's failure: why it failed, and what it said beside the protocol. */
import { inspect, stripVTControlCharacters } from 'node:util'
import { ByteTail } from '@deepseek-ai/dsh-process'

const maxReasonLength = 1500
const tailBytes = 1024

/** Values that are shorter may be in any text by chance, and are hardly secrets. */
const minSecretLength = 6

/** Gathers the output of a process that is no protocol, and never shows the values it was given. */
export class Diagnostic {
  readonly stderr: ByteTail
  /** What stdout held beside messages. */
  readonly noise: ByteTail
  private readonly secrets: ReadonlyMap<string, string>
  /** How much of a tail may be the rest of a value that the cut went through. */
  private readonly margin: number

  /** @param env the variables whose values are replaced by their names. */
  constructor(env: Readonly<Record<string, string>>) {
    this.secrets = secretsOf(env)
    this.margin = Math.max(
      0,
      ...Array.from(this.secrets.keys(), (value) => Buffer.byteLength(value)),
    )
    this.stderr = new ByteTail(tailBytes + this.margin)
    this.noise = new ByteTail(tailBytes + this.margin)
  }

  /** The reason, and the ends of both outputs. */
  about(reason: string): string {
    const text = cut(this.redact(reason))
    return `${text}${this.remark('stderr', this.stderr)}${this.remark('stdout', this.noise)}`
  }

  private remark(name: string, tail: ByteTail): string {
    const whole = this.redact(stripVTControlCharacters(tail.text()))
    const text = (tail.isCut ? whole.slice(this.margin) : whole).trim()
    return text === '' ? '' : `\n${name}${tail.isCut ? ' (its end)' : ''}: ${text}`
  }

  private redact(text: string): string {
    let clean = text
    for (const [value, name] of this.secrets) clean = clean.replaceAll(value, () => `[${name}]`)
    return clean
  }
}

/** What an agent sent, as JSON if it is no deeper than that can be written. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return inspect(value, { depth: 2 })
  }
}

/** Values and what stands for them, the longest first: one may hold another. Agents may quote one in JSON. */
function secretsOf(env: Readonly<Record<string, string>>): Map<string, string> {
  const secrets = Object.entries(env)
    .filter(([, value]) => value.length >= minSecretLength)
    .flatMap(([name, value]) => [
      [JSON.stringify(value).slice(1, -1), name] as const,
      [value, name] as const,
    ])
  return new Map(secrets.toSorted(([a], [b]) => b.length - a.length))
}

function cut(text: string): string {
  return text.length <= maxReasonLength ? text : `${text.slice(0, maxReasonLength).toWellFormed()}…`
}
