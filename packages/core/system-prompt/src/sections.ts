/** The sections of a context, as a plain object that hot paths may hold. */
import { messageOf } from '@deepseek-ai/dsh-llm'
import { SystemPromptError } from './errors.ts'
import type { PromptAgent, PromptSection } from './types.ts'

const variable = /\{\{\s*([^{}]*?)\s*\}\}/g
const variables = ['model', 'cwd'] as const

/** Ordered sections of the system prompt. */
export class PromptSections {
  private readonly byName = new Map<string, PromptSection>()
  private ordered: readonly PromptSection[] = []

  /** @throws SystemPromptError `DUPLICATE_SECTION`, `UNKNOWN_VARIABLE`; nothing is added then. */
  add(section: PromptSection): void {
    const { name, text } = section
    if (this.byName.has(name)) {
      throw new SystemPromptError('DUPLICATE_SECTION', `prompt section "${name}" already exists`)
    }
    if (typeof text === 'string') checkVariables(name, text)
    this.byName.set(name, section)
    this.order()
  }

  remove(section: PromptSection): void {
    this.byName.delete(section.name)
    this.order()
  }

  /**
   * The whole prompt for an agent, sections parted by a blank line; empty when there are none.
   * @throws SystemPromptError `SECTION_FAILED` when a section's function throws.
   */
  assemble(agent: PromptAgent): string {
    const parts: string[] = []
    for (const { name, text } of this.ordered) {
      const part = typeof text === 'string' ? fill(text, agent) : call(name, text, agent)
      if (part !== '') parts.push(part)
    }
    return parts.join('\n\n')
  }

  private order(): void {
    this.ordered = [...this.byName.values()].toSorted(
      (a, b) => (a.order ?? 0) - (b.order ?? 0) || (a.name < b.name ? -1 : 1),
    )
  }
}

function fill(text: string, agent: PromptAgent): string {
  return text.replace(variable, (_, name: (typeof variables)[number]) => agent[name])
}

function call(section: string, text: (agent: PromptAgent) => string, agent: PromptAgent): string {
  try {
    return text(agent)
  } catch (error) {
    const message = `prompt section "${section}" failed: ${messageOf(error)}`
    throw new SystemPromptError('SECTION_FAILED', message, { cause: error })
  }
}

function checkVariables(section: string, text: string): void {
  for (const [, name] of text.matchAll(variable)) {
    if (variables.some((known) => known === name)) continue
    const known = variables.map((item) => `{{${item}}}`).join(', ')
    throw new SystemPromptError(
      'UNKNOWN_VARIABLE',
      `prompt section "${section}" has an unknown variable "{{${name}}}" (known: ${known})`,
    )
  }
}
