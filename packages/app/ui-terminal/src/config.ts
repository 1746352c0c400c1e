/** The options of the front end. */
import z from '@deepseek-ai/schemastery'

export interface Config {
  /** What a terminal shows when it waits for input. */
  prompt: string
  /** Whether the model's reasoning is shown. */
  showReasoning: boolean
}

export const Config: z<Partial<Config>, Config> = z.object({
  prompt: z.string().default('> '),
  showReasoning: z.boolean().default(false),
})
