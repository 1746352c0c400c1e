/** Records the replies of a run into a fixture, or replays them without a model. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import { messageOf } from '@deepseek-ai/dsh-llm'
import z from '@deepseek-ai/schemastery'
import { readFixture } from './fixture.ts'
import { Recorder } from './recorder.ts'
import { Replayer } from './replayer.ts'

export * from './errors.ts'
export { type Fixture, readFixture, type RecordedReply } from './fixture.ts'

export const name = 'llm-replay'
export const inject = ['llm', 'sessions']

export interface Config {
  /** `record` watches the other adapters; `replay` is an adapter for the recorded models. */
  mode: 'record' | 'replay'
  /** Path of a JSON file, or with a slash at its end of a folder of such; relative to the yml's folder. */
  fixture: string
  /** Name on `ctx.llm`. */
  adapterName: string
}

export const Config: z<Partial<Config> & Pick<Config, 'mode' | 'fixture'>, Config> = z.object({
  mode: z.union(['record', 'replay'] as const).required(),
  fixture: z.string().required(),
  adapterName: z.string().default('replay'),
})

export function apply(ctx: Context, { mode, fixture, adapterName }: Config): void {
  const folder = ctx.baseUrl === undefined ? '.' : fileURLToPath(new URL('.', ctx.baseUrl))
  const path = `${resolve(folder, fixture)}${fixture.endsWith('/') ? '/' : ''}`
  if (mode === 'record') record(ctx, path)
  else replay(ctx, path, adapterName)
}

function record(ctx: Context, path: string): void {
  const recorder = new Recorder()
  const { logger } = ctx
  ctx.effect(
    () => () => {
      try {
        recorder.write(path)
      } catch (error) {
        logger.error(`the recording "${path}" could not be written: ${messageOf(error)}`)
      }
    },
    'llm-replay.record',
  )
  for (const session of ctx.sessions.list()) recorder.onCreated(session)
  ctx.on('session/created', ({ session }) => recorder.onCreated(session))
  ctx.on('session/event', ({ session, event }) => recorder.onEvent(session, event))
}

function replay(ctx: Context, path: string, adapterName: string): void {
  const { logger } = ctx
  const replayer = new Replayer({
    adapterName,
    path,
    fixture: readFixture(path),
    // An agent may take the failure of a child for an answer, and go on.
    tell: (error) => logger.error(error),
  })
  ctx.effect(() => () => replayer.tellUnused(), 'llm-replay.replay')
  for (const session of ctx.sessions.list()) replayer.onCreated(session)
  ctx.on('session/created', ({ session }) => replayer.onCreated(session))
  ctx.llm.registerAdapter(replayer.adapter)
}
