/** The catalog is what the sources give, and the sources say enough for it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readFacts, renderCatalog } from '../src/catalog/catalog.ts'
import { openWorkspace } from '../src/compiler.ts'
import { root } from '../src/workspace.ts'

const open = openWorkspace()
afterAll(() => open[Symbol.dispose]())
const facts = await readFacts(open.project)

describe('docs/catalog.md', () => {
  test('is what "pnpm generate" writes', async () => {
    const written = readFileSync(join(root, 'docs/catalog.md'), 'utf8')

    const fresh = await renderCatalog(facts)

    expect(
      written === fresh,
      `docs/catalog.md is stale: run "pnpm generate"\n${differing(written, fresh)}`,
    ).toBe(true)
  })

  test('lists what the harness is made of', () => {
    const services = facts.flatMap((item) => item.services.map(({ key }) => key))
    const events = facts.flatMap((item) => item.events.map(({ name }) => name))
    const keys = facts.flatMap(({ item, config }) =>
      config.map(({ path }) => `${item.shortName}.${path}`),
    )
    const codes = facts.flatMap((item) => item.errors.map(({ code }) => code))

    expect(services).toEqual(expect.arrayContaining(['agents', 'bash', 'fs', 'llm', 'subagents']))
    expect(events).toEqual(expect.arrayContaining(['session/event', 'subagent/end']))
    expect(keys).toEqual(expect.arrayContaining(['subagent-acp.command', 'agent.maxSteps']))
    expect(codes).toEqual(expect.arrayContaining(['NO_PROVIDER', 'MODEL_AUTH', 'STALE_FILE']))
  })
})

describe('the sources', () => {
  test('say of every service, event and config key what it is', () => {
    const silent = facts.flatMap(({ item, services, events, config }) => [
      ...services.filter(({ doc }) => doc === '').map(({ key }) => `${item.name}: ctx.${key}`),
      ...events.filter(({ doc }) => doc === '').map(({ name }) => `${item.name}: ${name}`),
      ...config.filter(({ doc }) => doc === '').map(({ path }) => `${item.name}: ${path}`),
    ])

    expect(silent, 'give these a docstring').toEqual([])
  })

  test('say of every error code what it means, in a docstring or in the message itself', () => {
    const silent = facts.flatMap(({ item, errors }) =>
      errors
        .filter(({ doc, messages }) => doc === '' && messages.length === 0)
        .map(({ code }) => `${item.name}: ${code}`),
    )

    expect(silent, 'give these members of the union a docstring').toEqual([])
  })

  test('say of an event that it is contained exactly when each emitter contains its listeners', () => {
    const wrong = facts.flatMap(({ events }) =>
      events
        .filter(({ doc, emissions }) => {
          const isContained = emissions.some(({ containment }) => containment === 'contained')
          const isMixed = new Set(emissions.map(({ containment }) => containment)).size > 1
          return /\bContained\./.test(doc) !== (isContained && !isMixed)
        })
        .map(({ name }) => name),
    )

    expect(wrong).toEqual([])
  })
})

/** The first line that differs, of both. */
function differing(written: string, fresh: string): string {
  const [before, after] = [written.split('\n'), fresh.split('\n')]
  const index = after.findIndex((line, at) => line !== before[at])
  return `- ${before[index] ?? ''}\n+ ${after[index] ?? ''}`
}
