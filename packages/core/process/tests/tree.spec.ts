import { describe, expect, test } from 'vitest'
import { cleanEnvironment } from '../src/index.ts'
import { type ProcessEntry, procTable, psTable } from '../src/table.ts'
import { ProcessTree } from '../src/tree.ts'
import { isAlive, pidsOf, startFixture } from './helpers.ts'

function entry(overrides: Partial<ProcessEntry> & { pid: number; marks?: string }): ProcessEntry {
  const { marks = '' } = overrides
  return {
    parent: 1,
    group: 9,
    bornAt: 100,
    isZombie: false,
    carries: (text) => marks.includes(text),
    ...overrides,
  }
}

function fail(): never {
  throw new Error('EMFILE')
}

/** A tree whose root is process 1000, born at 100, over a table that a test changes. */
function treeOver(entries: ProcessEntry[]) {
  const table = { bornAt: () => 100, read: async () => entries, readNow: () => entries }
  const tree = new ProcessTree({ pid: 1000, mark: 'm', table })
  return { tree, pids: async () => (await tree.look()).map(({ pid }) => pid) }
}

describe('ProcessTree', () => {
  test('finds members by group, by mark and by parent', async () => {
    const { pids } = treeOver([
      entry({ pid: 1000, group: 1000 }),
      entry({ pid: 1001, group: 1000 }),
      entry({ pid: 1002, marks: 'outer,m' }),
      entry({ pid: 1004, parent: 1003 }),
      entry({ pid: 1003, parent: 1002 }),
      entry({ pid: 2000, marks: 'other' }),
    ])

    expect(new Set(await pids())).toEqual(new Set([1000, 1001, 1002, 1003, 1004]))
  })

  test('leaves out the dead, the older, and the host itself', async () => {
    const { pids } = treeOver([
      entry({ pid: 1001, group: 1000, isZombie: true }),
      entry({ pid: 1002, group: 1000, bornAt: 99 }),
      entry({ pid: process.pid, marks: 'm' }),
    ])

    expect(await pids()).toEqual([])
  })

  test('remembers a member whose parent died, and not who got its number later', async () => {
    const entries = [entry({ pid: 1000, group: 1000 }), entry({ pid: 1001, parent: 1000 })]
    const { tree, pids } = treeOver(entries)
    await pids()

    entries.splice(0, 2, entry({ pid: 1001, parent: 1 }))
    tree.isRootGone = true
    expect(await pids()).toEqual([1001])

    entries.splice(0, 1, entry({ pid: 1001, parent: 1, bornAt: 101 }))
    expect(await pids()).toEqual([])
  })

  test('leaves alone a stranger that got the number of the root, and its group', async () => {
    const entries = [entry({ pid: 1000, group: 1000 })]
    const { tree, pids } = treeOver(entries)
    await pids()
    tree.isRootGone = true

    entries.splice(
      0,
      1,
      entry({ pid: 1000, group: 1000, bornAt: 500 }),
      entry({ pid: 1005, group: 1000, bornAt: 501 }),
    )

    expect(await pids()).toEqual([])
  })

  test('sends no signal to the number of a root that is gone', async () => {
    const stranger = startFixture(['deaf'])
    await pidsOf(stranger, 1)
    const tree = new ProcessTree({ pid: stranger.pid ?? 0, mark: 'a mark of nobody' })
    tree.isRootGone = true

    tree.signalGroup('SIGKILL')
    tree.killNow()

    expect(await tree.kill(1000)).toEqual([])
    expect(isAlive(stranger.pid)).toBe(true)
  })

  test('takes nothing for gone while the table cannot be read', async () => {
    let failures = 2
    const read = async (): Promise<ProcessEntry[]> => {
      failures -= 1
      return failures >= 0 ? fail() : []
    }
    const table = { bornAt: () => 100, read, readNow: () => fail() }
    const tree = new ProcessTree({ pid: 2 ** 22 + 1, mark: 'm', table })
    tree.isRootGone = true

    tree.killNow()
    expect(await tree.kill(0)).toEqual([2 ** 22 + 1])
    expect(await tree.kill(5000)).toEqual([])
  })

  test('takes a root for gone only when its exit is proven', async () => {
    const table = { bornAt: () => 100, read: async () => [], readNow: () => [] }
    const tree = new ProcessTree({ pid: 2 ** 22 + 1, mark: 'm', table })

    expect(await tree.kill(0)).toEqual([2 ** 22 + 1])
  })

  test('tells who is left when killing does not help', async () => {
    const { tree } = treeOver([entry({ pid: 2 ** 22 + 1, group: 1000 })])
    tree.isRootGone = true

    expect(await tree.kill(20)).toEqual([2 ** 22 + 1])
    expect(await tree.isGoneWithin(20)).toBe(false)
  })
})

describe.each([
  ['procTable', procTable],
  ['psTable', psTable],
])('%s', (_, table) => {
  test('shows a process, its group, its birth and its environment', async () => {
    const child = startFixture(['deaf'], { env: { PLANT: 'cactus' } })
    await pidsOf(child, 1)

    const found = (await table.read()).find(({ pid }) => pid === child.pid)

    expect(found).toMatchObject({ parent: process.pid, group: child.pid, isZombie: false })
    expect(found?.bornAt).toBeGreaterThanOrEqual(table.bornAt(child.pid ?? 0) - 2)
    expect(found?.carries('PLANT=cactus')).toBe(true)
    expect(found?.carries('PLANT=oak')).toBe(false)
  })

  test('serves to find and kill a whole tree', async () => {
    const mark = `cactus-${process.pid}-${performance.now()}`
    const child = startFixture(['daemon', 'stay'], { env: cleanEnvironment({ PLANT: mark }) })
    const pids = await pidsOf(child, 2)
    const tree = new ProcessTree({ pid: child.pid ?? 0, mark, table })

    const members = await tree.look()
    expect(members.map(({ pid }) => pid)).toEqual(expect.arrayContaining([child.pid, ...pids]))

    await Promise.all([tree.kill(5000), child.exited.then(() => (tree.isRootGone = true))])
    expect(await tree.look()).toEqual([])
  })
})
