/** The error of the scripted model. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

/** `NO_RULE` reaches a caller inside a finish chunk. */
export type ScriptErrorCode = 'INVALID_PLAYBOOK' | 'NO_RULE'

/** A failure of the scripted model. */
export class ScriptError extends HarnessError<ScriptErrorCode> {
  override readonly name: string = 'ScriptError'
}
