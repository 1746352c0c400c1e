/** Rule 6: nothing outlives its owner, whether that is a parent, a plugin or the process. */
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryProject, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ContractBackend, type ContractProcesses, promptFor } from '../backend.ts'
import {
  countListeners,
  createBench,
  deaf,
  disposeLimitMs,
  hanging,
  promptly,
  textOf,
} from '../bench.ts'
import { isRunning, untilExists } from '../files.ts'

export function describeOwners(backend: ContractBackend): void {
  describeParent(backend)
  if (backend.isInProcess) describeTree(backend)
  describeUnload(backend)
  if (backend.processes === undefined) describeHost(backend)
  else describeKilledHost(backend, backend.processes)
}

function describeParent(backend: ContractBackend): void {
  describe('rule 6, the end of the parent', () => {
    test.each([
      ['work', hanging],
      ['ignore every polite request', deaf],
    ])('ends its children, though they %s', async (_, behaviour) => {
      const { ctx, startTalking, alive, createParent } = await createBench(backend)
      const { agent: parent, dispose } = createParent()
      const runs = [
        await startTalking(behaviour, { parent }),
        await startTalking(behaviour, { parent }),
      ]
      expect(alive()).toBe(2)

      await promptly(dispose(), disposeLimitMs)

      expect(alive()).toBe(0)
      expect(ctx.subagents.runs()).toEqual([])
      const results = await Promise.all(runs.map((run) => run.result))
      expect(results.map(({ stopReason }) => stopReason)).toEqual(['aborted', 'aborted'])
    })

    test('leaves the children of others alone', async () => {
      const { start, gatePath, release, createParent } = await createBench(backend)
      const run = start({ does: 'answer', text: 'ok', after: gatePath })

      await createParent().dispose()
      await release()

      expect((await run.result).stopReason).toBe('completed')
      await run.dispose()
    })
  })
}

function describeTree(backend: ContractBackend): void {
  describe('rule 6, the end of a parent of parents', () => {
    test('ends the tree, the deepest first', async () => {
      const { ctx, start, alive, createParent } = await createBench(backend)
      const ended: number[] = []
      ctx.on('agent/disposed', ({ agent }) => {
        ended.push(agent.session.header.delegationDepth)
      })
      const { agent: parent, dispose } = createParent()
      const inner = promptFor({ does: 'delegate', prompt: promptFor(hanging), text: '' })
      start({ does: 'delegate', prompt: inner, text: '' }, { parent })
      await waitFor('three generations', () => alive() === 3)

      await dispose()

      expect(ended).toEqual([3, 2, 1, 0])
    })
  })
}

function describeUnload(backend: ContractBackend): void {
  describe('rule 6, unloading the backend', () => {
    test('stops new starts, and lets accepted runs finish', async () => {
      const { ctx, fiber, parent, start, gatePath, release, alive } = await createBench(backend)
      const run = start({ does: 'answer', text: 'ok', after: gatePath })

      await fiber.dispose()

      expect(ctx.tools.visible(parent).map(({ name }) => name)).toEqual(['probe'])
      expect(() => start(hanging)).toThrow(expect.objectContaining({ code: 'NO_PROVIDER' }))
      await release()
      const result = await run.result
      expect([result.stopReason, textOf(result)]).toEqual(['completed', 'ok'])
      await run.dispose()
      expect(alive()).toBe(0)
    })

    test('twenty times leaves one provider and one tool, and children that work', async () => {
      const { ctx, fiber, delegate, parent } = await createBench(backend)
      const listeners = countListeners(ctx)

      for (let reload = 0; reload < 20; reload += 1) await fiber.restart()

      expect(ctx.subagents.list()).toEqual([backend.providerName])
      expect(ctx.tools.visible(parent).map(({ name }) => name)).toEqual(['probe', 'subagent'])
      expect(countListeners(ctx)).toBe(listeners)
      expect((await delegate({ does: 'answer', text: 'ok' })).stopReason).toBe('completed')
    })

    test('and loading it again lets a run finish on the code that it started with', async () => {
      const { fiber, start, delegate, gatePath, release } = await createBench(backend)
      const run = start({ does: 'answer', text: 'old', after: gatePath })

      await fiber.restart()
      const fresh = await delegate({ does: 'answer', text: 'new' })
      await release()
      const old = await run.result

      expect([old.stopReason, textOf(old)]).toEqual(['completed', 'old'])
      expect([fresh.stopReason, textOf(fresh)]).toEqual(['completed', 'new'])
      await run.dispose()
    })
  })
}

function describeHost(backend: ContractBackend): void {
  describe('rule 6, the end of the host', () => {
    test('takes the children with it, for they are no processes', async () => {
      const { startTalking } = await createBench(backend)
      const run = await startTalking(hanging)

      expect(process.getActiveResourcesInfo()).not.toContain('ProcessWrap')
      await run.dispose()
    })
  })
}

function describeKilledHost(backend: ContractBackend, processes: ContractProcesses): void {
  describe('rule 6, the end of the host', () => {
    test.each([
      ['work', hanging],
      ['ignore every polite request', deaf],
    ])('by SIGKILL ends children that %s', async (_, behaviour) => {
      const host = await startHost(backend, processes, promptFor(behaviour))
      const pids = (): readonly number[] => processes.pids(host.folder)
      await untilExists(join(host.folder, 'talking'))
      expect(pids().map(isRunning)).toEqual([true])

      host.kill()

      await expect.poll(() => pids().some(isRunning), { timeout: disposeLimitMs }).toBe(false)
    })
  })
}

/** Starts a process that runs the backend and one child of it. */
async function startHost(
  { providerName }: ContractBackend,
  { entry }: ContractProcesses,
  prompt: string,
): Promise<{ readonly folder: string; readonly kill: () => void }> {
  const folder = await temporaryProject()
  const entries = [
    { name: '@deepseek-ai/dsh-agent-core' },
    { name: '@deepseek-ai/dsh-subagent' },
    entry(folder),
  ]
  await writeFile(join(folder, 'cordis.json'), JSON.stringify(entries))
  const program = fileURLToPath(new URL('../host.ts', import.meta.url))
  const host = spawn(process.execPath, [program, folder, providerName, prompt], {
    stdio: 'inherit',
  })
  const kill = (): boolean => host.kill('SIGKILL')
  onTestFinished(() => void kill())
  return { folder, kill }
}
