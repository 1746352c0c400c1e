/** The catalog: every service, event, config key and error code, by package. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { format, type FormatConfig } from 'oxfmt'
import type { Project } from 'typescript/unstable/sync'
import { type ConfigKey, configKeysOf, pluginOf } from './config-keys.ts'
import { type ErrorCode, errorCodesOf, errorMessagesOf } from './error-codes.ts'
import { type BusEvent, type Emission, emissionsOf, eventsOf } from './events.ts'
import { type ServiceFact, servicesOf } from './services.ts'
import { docIn } from '../syntax.ts'
import { entryOf, readWorkspace, root, type WorkspacePackage } from '../workspace.ts'

export interface PackageFacts {
  readonly item: WorkspacePackage
  /** The sentence that its entry module opens with. */
  readonly sentence: string
  readonly services: readonly ServiceFact[]
  readonly events: readonly (BusEvent & { readonly emissions: readonly Emission[] })[]
  readonly config: readonly ConfigKey[]
  readonly errors: readonly ErrorCode[]
}

/** Reads the facts of all packages that people load or import. */
export function readFacts(project: Project): Promise<PackageFacts[]> {
  const packages = readWorkspace().filter(
    ({ folder, manifest }) => folder.startsWith('packages/') && manifest.private !== true,
  )
  const emissions = emissionsOf(project, packages)
  const messages = errorMessagesOf(project, packages)
  return Promise.all(
    packages.map(async (item) => {
      const plugin = await pluginOf(item)
      return {
        item,
        sentence: docIn(readFileSync(entryOf(item), 'utf8').split('*/', 1)[0] + '*/'),
        services: servicesOf(project, item),
        events: eventsOf(project, item).map((event) => ({
          ...event,
          emissions: emissions.get(event.name) ?? [],
        })),
        config: plugin?.schema === undefined ? [] : configKeysOf(project, item, plugin.schema),
        errors: errorCodesOf(project, item, messages),
      }
    }),
  )
}

/** The page, formatted as all pages are. */
export function renderCatalog(facts: readonly PackageFacts[]): Promise<string> {
  const sections = facts.filter(isTold).map(renderPackage)
  return formatted('catalog.md', [intro, ...sections].join('\n\n'))
}

/** A text as the formatter would leave it. */
export async function formatted(file: string, text: string): Promise<string> {
  const options = JSON.parse(readFileSync(join(root, '.oxfmtrc.json'), 'utf8')) as FormatConfig
  const { code, errors } = await format(file, text, options)
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'))
  return code
}

const intro = `# Catalog

Every service, event, config key and error code, by package. This page is generated from the sources: \`pnpm generate\` writes it anew, and a test fails while it is stale.

An event is **contained** when a listener that throws harms neither the emitter nor another listener. A **waterfall** passes through its listeners, whose throw becomes the outcome. An ellipsis in a message stands for a value.`

function isTold({ services, events, config, errors }: PackageFacts): boolean {
  return services.length + events.length + config.length + errors.length > 0
}

function renderPackage({ item, sentence, ...facts }: PackageFacts): string {
  const { services, events, config, errors } = facts
  return [
    `## ${item.name}`,
    sentence,
    ...services.map(({ key, type, doc }) => `Service \`ctx.${key}\`: \`${type}\`. ${doc}`),
    table(
      ['Event', 'Listeners get', 'Means', 'Emitted by', 'A listener that throws'],
      events.map((event) => [
        code(event.name),
        code(event.signature),
        event.doc.replace(/ Contained\.$| @mode \w+$/, ''),
        emittersOf(event.emissions),
        containmentOf(event.emissions),
      ]),
    ),
    table(
      ['Config key', 'Type', 'Default', 'Means'],
      config.map(({ path, type, limits, defaultValue, isRequired, doc }) => [
        code(path),
        [code(type), limits].filter((part) => part !== '').join(', '),
        isRequired ? 'required' : defaultValue === undefined ? 'absent' : code(defaultValue),
        doc,
      ]),
    ),
    table(
      ['Error', 'Code', 'Means'],
      errors.map(({ error, code: name, doc, messages }) => [
        code(error),
        code(name),
        doc === '' ? messages.map(code).join('<br>') : doc,
      ]),
    ),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function emittersOf(emissions: readonly Emission[]): string {
  const names = new Set(emissions.map(({ by }) => code(by.replace('@deepseek-ai/', ''))))
  return names.size === 0 ? 'a plugin of cordis' : [...names].join(', ')
}

function containmentOf(emissions: readonly Emission[]): string {
  const kinds = new Set(emissions.map(({ containment }) => containment))
  // Who runs a waterfall may first look whether anybody listens.
  if (kinds.has('waterfall')) return 'waterfall'
  return [...kinds].join(', ') || 'unknown'
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  return [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')
}

const row = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`

const code = (text: string): string => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``)
