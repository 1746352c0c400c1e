import { mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { gate, temporaryFolder, testContext } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import FsService, { type FsAgent, type TextFiles } from '../src/index.ts'
import { anyRange, createAgent, failureOf } from './helpers.ts'

/** File access that asks a keeper of these texts, by name, for every agent but `others`. */
async function createKept(texts: Record<string, string>, more: Partial<TextFiles> = {}) {
  const ctx = testContext()
  await ctx.plugin(FsService, { maxFileBytes: 100 })
  const agent = await createAgent({ 'a.txt': 'on the disk\n' })
  const nameOf = (path: string): string => path.slice(agent.cwd.length + 1)
  const files: TextFiles = {
    load: async (path) => texts[nameOf(path)],
    save: async (path, text) => void (texts[nameOf(path)] = text),
    ...more,
  }
  const other: FsAgent = { cwd: agent.cwd }
  ctx.on('fs/text-files', (one) => (one === other ? undefined : files))
  return { fs: ctx.fs, agent, other, texts }
}

describe('fs/text-files', () => {
  test('gives the texts of one agent a keeper, and leaves another with the disk', async () => {
    const { fs, agent, other, texts } = await createKept({ 'a.txt': 'kept\n' })

    const [kept, disk] = [
      await fs.read(agent, 'a.txt', anyRange),
      await fs.read(other, 'a.txt', anyRange),
    ]
    await fs.edit(agent, 'a.txt', { oldText: 'kept', newText: 'changed' })

    expect([kept.lines, disk.lines]).toEqual([['kept'], ['on the disk']])
    expect(await fs.readText(agent, 'a.txt')).toBe('changed\n')
    expect(texts['a.txt']).toBe('changed\n')
    expect(await readFile(join(agent.cwd, 'a.txt'), 'utf8')).toBe('on the disk\n')
  })

  test('lets one of two agents win that change a file at the same time', async () => {
    const [saving, room] = [gate(), gate()]
    const saved: string[] = []
    const save = async (_: string, text: string): Promise<void> => {
      saved.push(text)
      saving.open()
      await room.opened
    }
    const { fs, agent } = await createKept({ 'a.txt': 'kept\n' }, { save })
    const second = { cwd: agent.cwd }
    for (const one of [agent, second]) await fs.read(one, 'a.txt', anyRange)

    const writing = [fs.write(agent, 'a.txt', '1'), fs.write(second, 'a.txt', '2')]
    const ends = Promise.allSettled(writing)
    await saving.opened
    const late = await failureOf(fs.write(second, 'a.txt', '3'))
    room.open()

    expect((await ends).map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(late).toMatch(/^STALE_FILE/)
    expect(saved).toHaveLength(1)
  })

  test('names files to the keeper below the folder of the agent, also when that is a link', async () => {
    const paths: string[] = []
    const load = async (path: string): Promise<string> => {
      paths.push(path)
      return 'kept\n'
    }
    const { fs, agent } = await createKept({}, { load })
    const cwd = join(await temporaryFolder(), 'link')
    await symlink(agent.cwd, cwd)

    await fs.read({ cwd }, join(cwd, 'a.txt'), anyRange)

    expect(paths).toEqual([join(cwd, 'a.txt')])
  })

  test('does not entitle to a change by readText', async () => {
    const { fs, agent } = await createKept({ 'a.txt': 'kept\n' })

    await fs.readText(agent, 'a.txt')

    expect(await failureOf(fs.write(agent, 'a.txt', ''))).toMatch(/^NOT_READ/)
  })

  test('refuses folders, too much, and what only the disk has', async () => {
    const { fs, agent } = await createKept({ 'big.txt': 'x'.repeat(101) })
    await mkdir(join(agent.cwd, 'folder'))

    const failures = [
      await failureOf(fs.read(agent, 'folder', anyRange)),
      await failureOf(fs.read(agent, 'big.txt', anyRange)),
      await failureOf(fs.read(agent, 'a.txt', anyRange)),
      await failureOf(fs.write(agent, 'new.txt', 'x'.repeat(101))),
    ]

    expect(failures.map((text) => text.split(':')[0])).toEqual([
      'NOT_A_FILE',
      'FILE_TOO_LARGE',
      'FILE_NOT_FOUND',
      'FILE_TOO_LARGE',
    ])
  })

  test('rejects with the reason of a signal, before and after the keeper is asked', async () => {
    const controller = new AbortController()
    const { fs, agent } = await createKept(
      {},
      {
        save: async () => {
          controller.abort(new Error('enough'))
          throw new Error('the request was withdrawn')
        },
      },
    )

    const writing = fs.write(agent, 'new.txt', 'x', controller.signal)

    await expect(writing).rejects.toThrow('enough')
    await expect(fs.readText(agent, 'new.txt', controller.signal)).rejects.toThrow('enough')
  })
})
