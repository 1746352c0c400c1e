/** Content on its way between a client and a session. */
import { fileURLToPath } from 'node:url'
import type { ContentBlock as AcpContent, ResourceLink } from '@agentclientprotocol/sdk'
import type { ImageBlock, ModelInfo, TextBlock, UserContent } from '@deepseek-ai/dsh-llm'
import { invalidParams } from './errors.ts'

/**
 * What a model is shown of a prompt.
 * @param model the one that will answer; absent when it is not registered any more.
 * @throws RequestError -32602 for what the model cannot take, and for a prompt without content.
 */
export function fromAcpPrompt(
  prompt: readonly AcpContent[],
  model: ModelInfo | undefined,
): UserContent {
  const content = prompt.map((block) => fromAcpBlock(block, model))
  if (content.some((block) => block.type === 'image' || block.text.trim() !== '')) return content
  throw invalidParams('the prompt is empty: send a text, a resource or an image')
}

/** Text and images as a client takes them. */
export function toAcpContent(block: TextBlock | ImageBlock): AcpContent {
  return block.type === 'text'
    ? { type: 'text', text: block.text }
    : { type: 'image', mimeType: block.mediaType, data: block.data }
}

function fromAcpBlock(block: AcpContent, model: ModelInfo | undefined): TextBlock | ImageBlock {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
      return imageFor(model, block.mimeType, block.data)
    case 'resource_link':
      return { type: 'text', text: textOfLink(block) }
    case 'resource': {
      const { resource } = block
      const { uri, mimeType } = resource
      if ('text' in resource) {
        const text = `<resource uri=${JSON.stringify(uri)}>\n${resource.text}\n</resource>`
        return { type: 'text', text }
      }
      if (mimeType?.startsWith('image/') === true) return imageFor(model, mimeType, resource.blob)
      throw invalidParams(`resource "${uri}" is neither text nor an image: send a link to it`)
    }
    case 'audio':
      throw invalidParams('audio is not taken: send a text')
  }
}

function imageFor(model: ModelInfo | undefined, mediaType: string, data: string): ImageBlock {
  if (model?.images === true) return { type: 'image', mediaType, data }
  throw invalidParams(
    `model "${model?.name ?? 'none'}" takes no images: choose one that does, or send a text`,
  )
}

function textOfLink({ uri, name, title, description, mimeType, size }: ResourceLink): string {
  const facts = [
    mimeType,
    size === undefined || size === null ? undefined : `${size} bytes`,
    description,
  ].filter(Boolean)
  const about = facts.length === 0 ? '' : ` (${facts.join(', ')})`
  return `[resource ${JSON.stringify(title ?? name)}${about}: ${placeOf(uri)}]`
}

/** The tools take paths. */
function placeOf(uri: string): string {
  try {
    return fileURLToPath(uri)
  } catch {
    // Not a file, or not one of this machine.
    return uri
  }
}
