/** Replies with `{{...}}` in their strings: checked once, filled in for each match. */
import type { Match, Source, When } from './rule.ts'

/** Fills in a value; what it draws from the conversation is data and never read as a template. */
export type Template<T> = (match: Match) => T

interface Reference {
  readonly name: string
  /** Number or name of a group of the pattern. */
  readonly group?: string
}

const placeholder = /(\\?)\{\{\s*([^{}]*?)\s*\}\}/g
const names = ['user', 'system', 'result', 'step', 'turn']

/** Prepares JSON data whose strings may hold placeholders; `\{{` stands for a literal `{{`. */
export function compileTemplate<T>(value: T): Template<T> {
  if (!JSON.stringify(value).includes('{{')) return () => value
  return compile(value) as Template<T>
}

/** @returns what is wrong with the placeholders of a text, given the conditions of its rule. */
export function problemOf(text: string, when: When): string | undefined {
  for (const [whole, escape, inner = ''] of text.matchAll(placeholder)) {
    if (escape !== '') continue
    const { name, group } = referenceOf(inner)
    if (!names.includes(name)) {
      return `unknown placeholder "${whole}" (known: ${names.join(', ')})`
    }
    if (group === undefined) continue
    const pattern = isSource(name) ? when[name] : undefined
    if (pattern === undefined) return `"${whole}" needs a pattern "when.${name}" in its rule`
    if (!groupsOf(pattern).includes(group)) {
      return `"${whole}" names a group that ${String(pattern)} does not have`
    }
  }
  return undefined
}

function compile(value: unknown): Template<unknown> {
  if (typeof value === 'string') return compileText(value)
  if (Array.isArray(value)) {
    const items = value.map(compile)
    return (match) => items.map((fill) => fill(match))
  }
  if (typeof value !== 'object' || value === null) return () => value
  const entries = Object.entries(value).map(([key, item]) => [key, compile(item)] as const)
  return (match) => Object.fromEntries(entries.map(([key, fill]) => [key, fill(match)]))
}

function compileText(text: string): Template<string> {
  const parts: Template<string>[] = []
  let end = 0
  for (const { 0: whole, 1: escape, 2: inner = '', index } of text.matchAll(placeholder)) {
    const before = text.slice(end, index)
    const literal = escape === '' ? before : before + whole.slice(1)
    parts.push(() => literal)
    if (escape === '') parts.push(valueOf(referenceOf(inner)))
    end = index + whole.length
  }
  const rest = text.slice(end)
  return (match) => parts.map((part) => part(match)).join('') + rest
}

function referenceOf(inner: string): Reference {
  const [name = '', group] = inner.split(/\.(.*)/s, 2)
  return { name, ...(group !== undefined && { group }) }
}

function valueOf({ name, group }: Reference): Template<string> {
  if (group === undefined)
    return ({ situation }) => String(situation[name as Source | 'step'] ?? '')
  // A group of a pattern that did not take part in the match is empty.
  return (match) => {
    const found = match[name as Source]
    return found?.groups?.[group] ?? found?.[Number(group)] ?? ''
  }
}

function isSource(name: string): name is Source {
  return name === 'user' || name === 'system' || name === 'result'
}

function groupsOf({ source, flags }: RegExp): string[] {
  const found = new RegExp(`${source}|`, flags).exec('')
  if (found === null) return []
  return [...Object.keys(found), ...Object.keys(found.groups ?? {})]
}
