/** The file tools, as a model sees them. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import { type FsService, quote } from '@deepseek-ai/dsh-fs-local'
import type { ModelRegistry } from '@deepseek-ai/dsh-llm'
import type { Tool, ToolResult } from '@deepseek-ai/dsh-tools'
import { z } from 'zod'
import { FsToolError } from './errors.ts'
import { formatLines, formatMatches, formatPaths } from './format.ts'
import { isImageName, mediaTypeOf } from './image.ts'

/** How much one result may hold. */
export interface FsToolLimits {
  readonly maxLines: number
  readonly maxResults: number
  readonly maxBytes: number
}

/** What the tools work with. */
export interface FsToolDeps {
  readonly fs: FsService
  readonly models: ModelRegistry
  readonly limits: FsToolLimits
}

const path = z.string().min(1)
const filePath = path.describe('relative to the working folder, or absolute within it')
const searchPath = path.describe('where to search; default: the working folder').optional()
const lineNumber = z.int().min(1)

const readParameters = z.object({
  path: filePath,
  offset: lineNumber.describe('first line, counted from 1; default 1').optional(),
  limit: lineNumber.describe('number of lines; default: as many as fit').optional(),
})

/** Reads text with line numbers, or an image when the agent's model takes images. */
export function createReadTool(deps: FsToolDeps): Tool<typeof readParameters> {
  const { fs, limits } = deps
  return {
    name: 'read',
    description:
      'Reads a text file, or an image if you can see images. Each line comes after its number and a tab, which are not part of the file. A file must be read before it can be changed. Use offset and limit for long files.',
    parameters: readParameters,
    parallel: true,
    async execute({ path: file, offset = 1, limit = limits.maxLines }, { agent, signal }) {
      const image = isImageName(file) ? await readImage(deps, agent, file, signal) : undefined
      if (image !== undefined) return image
      const part = await fs.read(agent, file, {
        firstLine: offset,
        maxLines: Math.min(limit, limits.maxLines),
        maxBytes: limits.maxBytes,
        signal,
      })
      return formatLines(part, offset)
    },
  }
}

/** What the common model APIs take in one image, before base64. */
const maxImageBytes = 3_750_000

/** Absent when the file only has the name of an image. */
async function readImage(
  { fs, models }: FsToolDeps,
  agent: Agent,
  file: string,
  signal: AbortSignal,
): Promise<ToolResult | undefined> {
  const bytes = await fs.readBytes(agent, file, signal)
  const mediaType = mediaTypeOf(bytes)
  if (mediaType === undefined) return undefined
  if (models.get(agent.model)?.images !== true) {
    throw new FsToolError(
      'IMAGES_NOT_SUPPORTED',
      `${quote(file)} is an image, which model ${quote(agent.model)} cannot see: learn of it another way`,
    )
  }
  if (bytes.length > maxImageBytes) {
    throw new FsToolError(
      'IMAGE_TOO_LARGE',
      `${quote(file)} has ${bytes.length} bytes, the limit for images is ${maxImageBytes}: make a smaller copy`,
    )
  }
  return { content: [{ type: 'image', mediaType, data: bytes.toString('base64') }], isError: false }
}

const writeParameters = z.object({
  path: filePath,
  content: z.string().describe('the whole new text of the file'),
})

/** Creates or replaces a file. */
export function createWriteTool({ fs }: FsToolDeps): Tool<typeof writeParameters> {
  return {
    name: 'write',
    description:
      'Creates a file, and the folders it needs, or replaces the whole text of an existing one, which must have been read first. To change a part of a file use edit.',
    parameters: writeParameters,
    async execute({ path: file, content }, { agent, signal }) {
      const change = await fs.write(agent, file, content, signal)
      return `${change.isNew ? 'created' : 'replaced'} ${quote(change.path)} (${change.bytes} bytes)`
    },
  }
}

const editParameters = z.object({
  path: filePath,
  oldText: z.string().min(1).describe('exact text from the file, without line numbers'),
  newText: z.string().describe('what takes its place'),
  replaceAll: z.boolean().describe('replace every occurrence; default false').optional(),
})

/** Replaces an exact text in a file. */
export function createEditTool({ fs }: FsToolDeps): Tool<typeof editParameters> {
  return {
    name: 'edit',
    description:
      'Replaces an exact text in a file that has been read. The old text must match the file, white space included, and occur once unless replaceAll is set: take in neighbouring lines to make it unique.',
    parameters: editParameters,
    async execute({ path: file, ...edit }, { agent, signal }) {
      const change = await fs.edit(agent, file, edit, signal)
      const { length } = change.lines
      const lines = change.lines.slice(0, 10).join(', ') + (length > 10 ? ', …' : '')
      return `edited ${quote(change.path)}: ${length} replaced, at line ${lines}`
    },
  }
}

const globParameters = z.object({
  pattern: z
    .string()
    .min(1)
    .describe('for example "src/**/*.ts"; without a slash it matches names in all folders'),
  path: searchPath,
})

/** Lists files by their names. */
export function createGlobTool({ fs, limits }: FsToolDeps): Tool<typeof globParameters> {
  return {
    name: 'glob',
    description:
      'Lists the files whose paths match a glob, sorted by path. Files that .gitignore names are left out.',
    parameters: globParameters,
    parallel: true,
    async execute({ pattern, path: folder }, { agent, signal }) {
      return formatPaths(await fs.glob(agent, pattern, { ...limits, path: folder, signal }))
    },
  }
}

const grepParameters = z.object({
  pattern: z
    .string()
    .min(1)
    .describe('a regular expression for one line, without look-around and backreferences'),
  path: searchPath,
  glob: z.string().min(1).describe('only files that match, for example "*.ts"').optional(),
  ignoreCase: z.boolean().describe('default false').optional(),
})

/** Finds lines by a regular expression. */
export function createGrepTool({ fs, limits }: FsToolDeps): Tool<typeof grepParameters> {
  return {
    name: 'grep',
    description:
      'Finds lines that match a regular expression, as path:line:text, sorted by path. Binary files and files that .gitignore names are left out.',
    parameters: grepParameters,
    parallel: true,
    async execute({ path: place, ...query }, { agent, signal }) {
      return formatMatches(await fs.grep(agent, query, { ...limits, path: place, signal }))
    },
  }
}
