/** The error of the file tools themselves. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export type FsToolErrorCode = 'NO_TOOLS' | 'IMAGES_NOT_SUPPORTED' | 'IMAGE_TOO_LARGE'

/** A failure of the file tools. */
export class FsToolError extends HarnessError<FsToolErrorCode> {
  override readonly name: string = 'FsToolError'
}
