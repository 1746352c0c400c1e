/** Stops the boot, and says what to set, when the environment does not tell which model to use. */
import { HarnessError } from '@deepseek-ai/dsh-llm'

export const name = 'environment'

/** @throws HarnessError `NO_MODEL_KEY`, `NO_MODEL_NAME`. */
export function apply(): void {
  const { DEEPSEEK_API_KEY, OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL, ANTHROPIC_API_KEY } =
    process.env
  if (!DEEPSEEK_API_KEY && !OPENAI_API_KEY && !OPENAI_BASE_URL && !ANTHROPIC_API_KEY) {
    throw new HarnessError(
      'NO_MODEL_KEY',
      'no model to talk to: set DEEPSEEK_API_KEY, or ANTHROPIC_API_KEY, or OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL for any OpenAI-compatible endpoint; in the environment or in a file ".env" beside the yml',
    )
  }
  if (OPENAI_BASE_URL && !OPENAI_MODEL) {
    throw new HarnessError(
      'NO_MODEL_NAME',
      'OPENAI_BASE_URL is set but no model is named: set OPENAI_MODEL to one that this endpoint serves',
    )
  }
}
