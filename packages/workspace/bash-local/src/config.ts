/** The options of the executor. */
import z from '@deepseek-ai/schemastery'

export interface Config {
  /** Absolute path of the shell; absent: `/bin/bash`, or `/bin/sh` where there is none. */
  shell?: string
  /** Time limit of a command that names none, in ms. */
  timeoutMs: number
  /** Longest time limit that a command may name, in ms. */
  maxTimeoutMs: number
  /** Time between SIGTERM and SIGKILL, in ms. */
  graceMs: number
  /** Longest output that is given whole, in bytes; of a longer one, head and tail. */
  maxOutputBytes: number
  /** How much of a longer output is stored in its file, in bytes. */
  maxFileBytes: number
  /** Variables for every command, over the ambient ones. */
  env: Record<string, string>
}

export const Config: z<Partial<Config>, Config> = z.object({
  shell: z.string(),
  timeoutMs: z.natural().min(1).max(2_147_483_647).default(120_000),
  maxTimeoutMs: z.natural().min(1).max(2_147_483_647).default(600_000),
  graceMs: z.natural().max(60_000).default(750),
  maxOutputBytes: z.natural().min(100).default(32_768),
  maxFileBytes: z.natural().default(16_777_216),
  env: z.dict(z.string().required()),
})
