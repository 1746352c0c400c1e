/** The system prompt: ordered sections, reached through `ctx.systemPrompt`. */
import { type Context, Service } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { PromptSections } from './sections.ts'
import type { PromptAgent, PromptSection } from './types.ts'

export * from './errors.ts'
export * from './sections.ts'
export * from './types.ts'

declare module '@deepseek-ai/cordis' {
  interface Context {
    systemPrompt: SystemPromptService
  }
}

export interface SystemPromptConfig {
  /** The deployment's persona, the first section of every agent; may use `{{model}}` and `{{cwd}}`. */
  persona: string
}

/** Registry of {@link PromptSection}s. */
export class SystemPromptService extends Service {
  static readonly Config: z<Partial<SystemPromptConfig>, SystemPromptConfig> = z.object({
    persona: z.string().default(''),
  })

  /** The plain registry, for hot paths: each read through `ctx.systemPrompt` passes a proxy. */
  readonly sections = new PromptSections()

  constructor(ctx: Context, { persona }: SystemPromptConfig) {
    super(ctx, 'systemPrompt')
    if (persona !== '') this.sections.add({ name: 'persona', order: -100, text: persona })
  }

  /**
   * Adds a section until the calling plugin is disposed.
   * @returns a disposer that removes it early; calling it twice is harmless.
   * @throws SystemPromptError `DUPLICATE_SECTION`, `UNKNOWN_VARIABLE`.
   */
  register(section: PromptSection): () => Promise<void> {
    const { sections } = this
    return this.ctx.effect(() => {
      sections.add(section)
      return () => sections.remove(section)
    }, `systemPrompt.register(${section.name})`)
  }

  /** The whole prompt for an agent; empty when there are no sections. @throws SystemPromptError `SECTION_FAILED`. */
  assemble(agent: PromptAgent): string {
    return this.sections.assemble(agent)
  }
}

export default SystemPromptService
