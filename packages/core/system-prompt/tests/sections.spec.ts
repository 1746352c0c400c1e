import type { SessionId } from '@deepseek-ai/dsh-session'
import { describe, expect, test } from 'vitest'
import {
  type PromptAgent,
  type PromptSection,
  PromptSections,
  SystemPromptError,
} from '../src/index.ts'

const agent = { id: 'agent' as SessionId, model: 'large', cwd: '/work' } as PromptAgent

function assemble(sections: readonly PromptSection[], of: Partial<PromptAgent> = {}): string {
  const table = new PromptSections()
  for (const section of sections) table.add(section)
  return table.assemble({ ...agent, ...of })
}

describe('PromptSections.assemble', () => {
  test('gives nothing when there are no sections', () => {
    expect(assemble([])).toBe('')
  })

  test('parts the sections by a blank line, by order and then by name', () => {
    const sections: PromptSection[] = [
      { name: 'z', text: 'default z' },
      { name: 'a', text: 'default a' },
      { name: 'first', order: -1, text: 'first' },
      { name: 'last', order: 10, text: 'last' },
    ]

    expect(assemble(sections)).toBe('first\n\ndefault a\n\ndefault z\n\nlast')
  })

  test('does not depend on the order of registration', () => {
    const sections: PromptSection[] = [
      { name: 'b', text: 'b' },
      { name: 'c', order: -5, text: 'c' },
      { name: 'a', text: 'a' },
    ]

    const prompts = [sections, sections.toReversed(), [...sections.slice(1), sections[0]!]].map(
      (order) => assemble(order),
    )

    expect(new Set(prompts)).toEqual(new Set(['c\n\na\n\nb']))
  })

  test('fills in the variables, with or without spaces, as often as they occur', () => {
    const text = '{{model}} in {{ cwd }}, {{model}} again'

    expect(assemble([{ name: 'a', text }])).toBe('large in /work, large again')
  })

  test.each(['$&', '$1', "$'", '{{model}}', '\\'])(
    'takes the value "%s" of a variable as it is',
    (cwd) => {
      expect(assemble([{ name: 'a', text: '<{{cwd}}>' }], { cwd })).toBe(`<${cwd}>`)
    },
  )

  test('asks a function for its text, and takes it as it is', () => {
    const section: PromptSection = { name: 'a', text: ({ cwd }) => `at ${cwd}, not {{cwd}}` }

    expect(assemble([section])).toBe('at /work, not {{cwd}}')
  })

  test('leaves out sections without text', () => {
    const sections: PromptSection[] = [
      { name: 'a', text: '' },
      { name: 'b', text: 'b' },
      { name: 'c', text: () => '' },
    ]

    expect(assemble(sections)).toBe('b')
  })

  test('names the section whose function throws', () => {
    const section: PromptSection = {
      name: 'repository',
      text: () => {
        throw new Error('no git')
      },
    }

    expect(() => assemble([section])).toThrow(
      new SystemPromptError('SECTION_FAILED', 'prompt section "repository" failed: no git'),
    )
  })
})

describe('PromptSections.add', () => {
  test('refuses a second section with the same name, and keeps the first', () => {
    const table = new PromptSections()
    table.add({ name: 'a', text: 'first' })

    expect(() => table.add({ name: 'a', text: 'second' })).toThrow(
      new SystemPromptError('DUPLICATE_SECTION', 'prompt section "a" already exists'),
    )
    expect(table.assemble(agent)).toBe('first')
  })

  test.each(['{{modell}}', '{{ }}', '{{}}', '{{agent.cwd}}', 'ok {{cwd}} but {{CWD}}'])(
    'refuses an unknown variable in "%s"',
    (text) => {
      const table = new PromptSections()

      const add = (): void => table.add({ name: 'a', text })

      expect(add).toThrow(expect.objectContaining({ code: 'UNKNOWN_VARIABLE' }))
      expect(add).toThrow(/^prompt section "a" has an unknown variable "\{\{.*\}\}" \(known: /)
      expect(add).toThrow('(known: {{model}}, {{cwd}})')
      expect(table.assemble(agent)).toBe('')
    },
  )
})
