/** Whether every entry of a booted configuration did load, and what is wrong with those that did not. */
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Fiber } from '@deepseek-ai/cordis'
import type { Entry, Loader } from '@deepseek-ai/cordis-plugin-loader'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { ConfigFile } from './config-file.ts'
import { unknownKey } from './entries.ts'
import { errorText, pathOf, placeOf } from './error-text.ts'
import { type SchemaNode, unknownKeys } from './keys.ts'
import { missingPackage } from './packages.ts'

/** What is wrong with one entry. */
export interface Problem {
  /** `silent` when cordis itself logs nothing about it. */
  readonly kind: 'failed' | 'silent'
  /** Names the entry and the remedy. */
  readonly text: string
}

/** Who provides the services that an entry may wait for. */
const providers: Readonly<Record<string, string>> = {
  llm: '@deepseek-ai/dsh-agent-core',
  sessions: '@deepseek-ai/dsh-agent-core',
  tools: '@deepseek-ai/dsh-agent-core',
  systemPrompt: '@deepseek-ai/dsh-agent-core',
  agents: '@deepseek-ai/dsh-agent-core',
  subagents: '@deepseek-ai/dsh-subagent',
  bash: '@deepseek-ai/dsh-bash-local',
  fs: '@deepseek-ai/dsh-fs-local',
  timer: '@deepseek-ai/cordis-plugin-timer',
}

const includeSchema: SchemaNode = {
  type: 'object',
  dict: { path: {}, patches: {}, enableLogs: {} },
}
const secretName = /KEY|PASSWORD|SECRET|TOKEN|CREDENTIAL/i
/** `FiberState.PENDING`, a `const enum` member that has no value at run time. */
const pendingState = 0

/** The problems of all enabled entries, those of included files among them. `root` is named by its file alone. */
export async function problemsOf(loader: Loader, root: Entry): Promise<Problem[]> {
  const problems: Problem[] = []
  for (const entry of loader.entries()) {
    const found = await problemsOfEntry(entry)
    const name = entry === root ? '' : `${nameOf(entry, root)}: `
    for (const { kind, text } of found) {
      for (const line of text.split('\n')) problems.push({ kind, text: `${name}${line}` })
    }
  }
  return problems
}

/**
 * How people find the entry: its name, its id when it has one of its own, else its place when there
 * are others of that name, and its file when that is included.
 */
export function nameOf(entry: Entry, root?: Entry): string {
  const { name } = entry.options
  const { tree } = entry.parent
  const isNested = tree instanceof ConfigFile && tree !== root?.subtree
  const where = isNested ? `"${pathOf(tree.filename)}", ` : ''
  return `${where}entry "${name}"${distinctionOf(entry)}`
}

function distinctionOf({ options: { id, name }, parent: { tree } }: Entry): string {
  if (id.replace(/#\d+$/, '') !== name.replaceAll(':', '.')) return ` (id "${id}")`
  const namesakes = Object.values(tree.store).filter(({ options }) => options.name === name)
  const place = tree instanceof ConfigFile ? tree.places.get(id) : undefined
  return namesakes.length > 1 && place !== undefined ? ` (${place})` : ''
}

async function problemsOfEntry(entry: Entry): Promise<Problem[]> {
  let isDisabled: boolean
  try {
    isDisabled = entry.disabled
  } catch (error) {
    return [{ kind: 'failed', text: `the expression of "disabled" failed: ${messageOf(error)}` }]
  }
  if (isDisabled) return []
  const { fiber } = entry
  if (fiber === undefined) return [{ kind: 'failed', text: importProblem(entry) }]
  const unknown = unknownKeys(schemaOf(fiber), entry.options.config)
  const silent = unknown.map(({ path, known }): Problem => ({
    kind: 'silent',
    text: unknownKey('config key', path, known),
  }))
  const failure = await failureOf(fiber)
  if (failure !== undefined) {
    const text = failureText(entry, fiber, failure)
    // Some plugins look for unknown keys themselves.
    const isSaid = unknown.some(({ path }) =>
      text.includes(`unknown key "${path.slice(path.lastIndexOf('.') + 1)}"`),
    )
    return isSaid ? silent : [...silent, { kind: 'failed', text }]
  }
  const state: number = fiber.state
  return state === pendingState
    ? [...silent, { kind: 'silent', text: waitProblem(entry, fiber) }]
    : silent
}

function schemaOf(fiber: Fiber): SchemaNode | undefined {
  const { runtime } = fiber
  if ((runtime?.callback as unknown) === ConfigFile) return includeSchema
  const schema = runtime?.Config
  return schema?.['~standard'].vendor === 'schemastery'
    ? (schema as unknown as SchemaNode)
    : undefined
}

async function failureOf(fiber: Fiber): Promise<unknown> {
  try {
    await fiber.await()
    return undefined
  } catch (error) {
    return error
  }
}

function failureText(entry: Entry, fiber: Fiber, error: unknown): string {
  const [, service] = /^cannot get property "(.*)" without inject$/.exec(messageOf(error)) ?? []
  return service === undefined
    ? configProblem(error)
    : injectProblem(entry, fiber, service, placeOf(error as Error))
}

function injectProblem(entry: Entry, fiber: Fiber, service: string, place?: string): string {
  const { tree } = entry.parent
  if (tree instanceof ConfigFile && tree.hidingInject.has(entry.options.name)) {
    return 'has a default export, which hides its "inject": remove "export default"'
  }
  const names = [...Object.keys(fiber.inject), service].map((name) => `'${name}'`).join(', ')
  const isClass = /^class\b/.test(String(fiber.runtime?.callback))
  const remedy = `${isClass ? 'static inject' : 'export const inject'} = [${names}]`
  const where = place === undefined ? '' : ` (${place})`
  return `uses service "${service}"${where} without "inject": add "${remedy}"`
}

/** Schemastery writes `  - $.key expected x but got y (at key)`. */
function configProblem(error: unknown): string {
  if (!(error instanceof Error) || error.name !== 'ValidationError') {
    return remedied(error)
  }
  return error.message
    .split('\n')
    .slice(1)
    .map((line) => {
      const [, , message = line.trim(), path] =
        /^ +- (\$\S* )?(.*?)(?: \(at (.*)\))?$/.exec(line) ?? []
      const isSecret = path !== undefined && secretName.test(path)
      const safe = message.replace(/ but got (.*)$/, isSecret ? '' : ' but got "$1"')
      return path === undefined ? `config: ${safe}` : `config key "${path}": ${safe}`
    })
    .join('\n')
}

function remedied(error: unknown): string {
  const message = messageOf(error)
  if (/^service ".*" has been registered at /.test(message)) {
    return `${message}: two entries provide it, remove one of them`
  }
  return /is already registered/.test(message) && !/: (give|remove|rename) /.test(message)
    ? `${message}: two entries register it, remove or rename one of them`
    : errorText(error)
}

/** One line for the services that have the same remedy. */
function waitProblem({ loader }: Entry, { ctx, inject }: Fiber): string {
  const missing = Object.keys(inject).filter((service) => ctx.get(service) === undefined)
  const names = Array.from(loader.entries(), ({ options }) => options.name)
  const lines = Object.entries(Object.groupBy(missing, (service) => providers[service] ?? ''))
  return lines
    .map(([provider, services = []]) => {
      const waits = `waits for service ${services.map((service) => `"${service}"`).join(', ')}`
      if (names.includes(provider)) return `${waits} of entry "${provider}", which does not run`
      const remedy = provider === '' ? 'add an entry that does' : `add an entry for "${provider}"`
      return `${waits}, which no entry provides: ${remedy}`
    })
    .join('\n')
}

function importProblem(entry: Entry): string {
  const { tree } = entry.parent
  const { name } = entry.options
  const error = tree instanceof ConfigFile ? tree.importErrors.get(name) : undefined
  if (!(error instanceof Error)) return 'it could not be loaded: the log says why (DSH_DEBUG=1)'
  const missing = /^Cannot find (package|module) '(.*?)' imported from (.*)$/m.exec(error.message)
  if (missing !== null)
    return missingProblem(resolve(fileURLToPath(tree.ctx.baseUrl ?? '')), missing)
  if (error.name === 'AppError') return error.message
  const place = placeOf(error)
  if (error instanceof SyntaxError)
    return `syntax error at ${place ?? 'an unknown line'}: ${error.message}`
  return `its module failed while it was loaded: ${errorText(error)}`
}

function missingProblem(folder: string, [, kind, target = '', from = '']: RegExpExecArray): string {
  const isOwn = resolve(from) === folder
  if (kind === 'package') {
    return isOwn
      ? `package "${target}" ${missingPackage(target, folder)}`
      : `${pathOf(from)} imports package "${target}", which ${missingPackage(target, dirname(from))}`
  }
  return isOwn
    ? `file "${pathOf(target)}" does not exist: check the entry's name`
    : `${pathOf(from)} imports "${pathOf(target)}", which does not exist`
}
