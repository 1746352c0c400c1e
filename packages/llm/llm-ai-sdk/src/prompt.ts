/** From the session's messages to the prompt of the AI SDK. */
import { createHash } from 'node:crypto'
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider'
import type {
  AssistantContent,
  ImageBlock,
  JsonObject,
  JsonValue,
  Message,
  ModelInfo,
  TextBlock,
  ToolResultBlock,
} from '@deepseek-ai/dsh-llm'
import { cacheMarker, type Provider } from './providers.ts'

type Role<R extends LanguageModelV4Message['role']> = Extract<LanguageModelV4Message, { role: R }>
type AssistantPart = Role<'assistant'>['content'][number]
type SharedOptions = LanguageModelV4FilePart['providerOptions']

/** A message in the provider's form; absent parts say that nothing of it can be sent. */
interface Converted {
  readonly message?: Role<'user'> | Role<'assistant'>
  readonly result?: LanguageModelV4ToolResultPart
  /** Images of the result, for a provider that takes them from users only. */
  readonly images?: readonly LanguageModelV4FilePart[]
}

/** Makes the prompt of a request. */
export type PromptBuilder = (system: string, messages: readonly Message[]) => LanguageModelV4Prompt

/**
 * Makes a {@link PromptBuilder} for one model. Messages are frozen and shared, so that each is
 * converted once, however often it is sent.
 */
export function createPromptBuilder(model: ModelInfo, provider: Provider): PromptBuilder {
  const known = new WeakMap<Message, Converted>()
  const convert = (message: Message): Converted => {
    const found = known.get(message) ?? convertMessage(message, model, provider)
    known.set(message, found)
    return found
  }
  return (system, messages) => {
    const prompt = joined(messages.map(convert))
    const last = prompt.pop()
    if (last !== undefined) prompt.push({ ...last, providerOptions: cacheMarker })
    if (system === '') return prompt
    return [{ role: 'system', content: system, providerOptions: cacheMarker }, ...prompt]
  }
}

/** Results of one step share a message, as some APIs demand; their images come after all of them. */
function joined(converted: readonly Converted[]): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = []
  let results: LanguageModelV4ToolResultPart[] = []
  let images: LanguageModelV4FilePart[] = []
  const close = (): void => {
    if (results.length > 0) prompt.push({ role: 'tool', content: results })
    if (images.length > 0) prompt.push({ role: 'user', content: images })
    results = []
    images = []
  }
  for (const { message, result, images: more = [] } of converted) {
    if (result !== undefined) results.push(result)
    images.push(...more)
    if (message === undefined) continue
    close()
    prompt.push(message)
  }
  close()
  return prompt
}

function convertMessage(message: Message, model: ModelInfo, provider: Provider): Converted {
  switch (message.role) {
    case 'user': {
      const content = message.content.map((block) => userPart(block, model))
      return content.length === 0 ? {} : { message: { role: 'user', content } }
    }
    case 'assistant': {
      const content = message.content.flatMap(assistantParts)
      return content.length === 0 ? {} : { message: { role: 'assistant', content } }
    }
    case 'tool':
      return convertResult(message.content[0], model, provider)
  }
}

function userPart(
  block: TextBlock | ImageBlock,
  model: ModelInfo,
): Role<'user'>['content'][number] {
  if (block.type === 'text') return { type: 'text', text: block.text }
  if (model.images !== true) return { type: 'text', text: omitted(model) }
  return imagePart(block)
}

function imagePart({ data, mediaType }: ImageBlock): LanguageModelV4FilePart {
  return { type: 'file', data: { type: 'data', data }, mediaType }
}

function omitted({ name }: ModelInfo): string {
  return `[image omitted: model "${name}" takes no images]`
}

function assistantParts(block: AssistantContent[number]): AssistantPart[] {
  switch (block.type) {
    case 'text':
      // Blank text between reasoning and calls is common, and refused by some APIs.
      return block.text.trim() === '' ? [] : [{ type: 'text', text: block.text }]
    case 'reasoning':
      return [{ type: 'reasoning', text: block.text, ...optionsOf(block.metadata) }]
    case 'tool-call':
      return [
        {
          type: 'tool-call',
          toolCallId: apiWord(block.callId),
          toolName: apiWord(block.name),
          input: inputOf(block.input),
          ...optionsOf(block.metadata),
        },
      ]
  }
}

/**
 * A tool name or call id in a form that every API takes, the same for the same text. Models make up
 * names, and ids may come from another API: one that is refused would spoil every later request.
 */
function apiWord(text: string): string {
  if (/^[a-zA-Z0-9_-]{1,64}$/.test(text)) return text
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 8)
  return `${text.slice(0, 55).replace(/[^a-zA-Z0-9_-]/g, '_')}_${hash}`
}

/** APIs take objects only; what the model wrote instead is shown to it under a name. */
function inputOf(input: JsonValue): unknown {
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input)
  return isObject ? input : { invalidArguments: input }
}

/** Metadata was a provider's, keyed by provider, when it came: it goes back as it is. */
function optionsOf(metadata: JsonObject | undefined): { providerOptions?: SharedOptions } {
  return metadata === undefined ? {} : { providerOptions: metadata as SharedOptions }
}

function convertResult(block: ToolResultBlock, model: ModelInfo, provider: Provider): Converted {
  const { callId, name, content, isError } = block
  const images = content.filter((item) => item.type === 'image')
  const text = content
    .map((item) => (item.type === 'text' ? item.text : model.images === true ? '' : omitted(model)))
    .filter((line) => line !== '')
    .join('\n')
  const result = {
    type: 'tool-result' as const,
    toolCallId: apiWord(callId),
    toolName: apiWord(name),
  }
  if (images.length === 0 || model.images !== true) {
    return { result: { ...result, output: { type: isError ? 'error-text' : 'text', value: text } } }
  }
  const files = images.map(imagePart)
  const caption = text || '(image)'
  if (!provider.takesResultImages) {
    return { result: { ...result, output: { type: 'text', value: caption } }, images: files }
  }
  const value = [{ type: 'text' as const, text: caption }, ...files]
  return { result: { ...result, output: { type: 'content', value } } }
}
