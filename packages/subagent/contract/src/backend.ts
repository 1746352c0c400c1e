/** What the suite needs of a backend, and what it asks of its children. */
import type { Context, Fiber } from '@deepseek-ai/cordis'
import type { SubagentCapabilities } from '@deepseek-ai/dsh-subagent'

/**
 * A backend, as the suite sees it. Nothing is skipped: where a backend says that it cannot do
 * something, the suite tests that it refuses, or lacks, what it says it does.
 */
export interface ContractBackend {
  readonly providerName: string
  readonly capabilities: SubagentCapabilities
  readonly inheritsParentContext: boolean
  /** Whether its children are agents of the same context, with a session, tools and a model of ours. */
  readonly isInProcess: boolean
  /** Whether its runs have `sendMessage`: a child then plays the part in the last message. */
  readonly takesMessages: boolean
  /** Whether its runs have `resume`: the child then plays the part in the new prompt. */
  readonly takesPrompts: boolean
  /** Whether a child that answers once uses 10 input and 5 output tokens, and says so. */
  readonly reportsUsage: boolean
  /** Present when its children are processes of their own. */
  readonly processes?: ContractProcesses
  /**
   * Loads the backend into a booted context, as its users do. Its children play the part that
   * {@link behaviourOf} gives.
   * @param folder a temporary folder of the test; the cwd of all its agents.
   */
  readonly load: (ctx: Context, folder: string) => Promise<LoadedBackend>
}

/** Children that could outlive a host that is killed. */
export interface ContractProcesses {
  /** The yml entry that loads the backend. */
  readonly entry: (folder: string) => { readonly name: string; readonly config: object }
  /** The ids of all processes that have served as children in this folder. */
  readonly pids: (folder: string) => readonly number[]
}

/** A loaded backend, and what the world shows of its children. */
export interface LoadedBackend {
  /** Of the plugin: what unloading and reloading mean. */
  readonly fiber: Fiber
  /** How many children there have been so far. */
  readonly started: () => number
  /** How many children exist now: agents in the registry, processes in the system. */
  readonly alive: () => number
}

/** One child's whole part, written into its prompt. What it streams as `text` comes first. */
export type Behaviour =
  /** Completes with the text, once the file `after` exists when one is given; if deaf, also after a cancel. */
  | {
      readonly does: 'answer'
      readonly text: string
      readonly after?: string
      readonly isDeaf?: boolean
    }
  /** Says each text as a message of its own, with a call of `tool` between them. */
  | { readonly does: 'messages'; readonly texts: readonly string[]; readonly tool?: string }
  /** Ends without having finished. */
  | { readonly does: 'stop'; readonly text: string; readonly reason: 'max-tokens' | 'refusal' }
  /** Fails in the middle; `message` is what the failure says. */
  | { readonly does: 'fail'; readonly text: string; readonly message: string }
  /** Never ends by itself; one that is deaf ignores every polite request to end. */
  | { readonly does: 'hang'; readonly text: string; readonly isDeaf?: boolean }
  /** Hands in each value in turn; asked only of backends with `outputSchema`. */
  | {
      readonly does: 'hand-in'
      readonly values: readonly Readonly<Record<string, string | number>>[]
    }
  /** Delegates through the tool `subagent`, then says the text; asked only of agents in process. */
  | { readonly does: 'delegate'; readonly prompt: string; readonly text: string }

/** The prompt that asks for a behaviour. */
export function promptFor(behaviour: Behaviour): string {
  return JSON.stringify(behaviour)
}

/** The behaviour that a prompt asks for. @throws SyntaxError when it asks for none. */
export function behaviourOf(prompt: string): Behaviour {
  return JSON.parse(prompt) as Behaviour
}
