import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startModelServer } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { everyProvider, modelNames } from './helpers.ts'

const run = promisify(execFile)
const program = fileURLToPath(new URL('fixtures/loaded-packages.ts', import.meta.url))

describe('the packages of the AI SDK', () => {
  test.each(everyProvider)(
    'that are loaded for %s are its own, and only on first use',
    async (provider) => {
      const server = await startModelServer(['hello'])

      const { stdout } = await run(process.execPath, [
        program,
        JSON.stringify({
          provider,
          baseURL: server.baseURL,
          apiKey: 'sk-any',
          models: [modelNames[provider]],
        }),
      ])

      const told: unknown = JSON.parse(stdout)
      expect(told).toEqual({ atBoot: [], inUse: [provider], text: 'hello' })
    },
  )
})
