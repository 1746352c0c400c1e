import { dirname, join } from 'node:path'
import { boot } from '@deepseek-ai/dsh-app'
import { describe, expect, onTestFinished, test } from 'vitest'
import { config, createStreams } from './helpers.ts'

/** Stands in for the hot-reload plugin; what its watcher is told to add is a file a line in `dshWatched`. */
const hotReload = (root: string, answer: string): string => `
import { EventEmitter } from 'node:events'
import { Service } from '@deepseek-ai/cordis'
export default class extends Service {
  config = { root: ${root} }
  watcher = Object.assign(new EventEmitter(), {
    add(files) {
      globalThis.dshWatched.push(...files)
      process.nextTick(() => this.emit(${answer}))
    },
  })
  constructor(ctx) {
    super(ctx, 'hmr')
    this.watcher.on('error', () => {})
  }
}
`

async function watchedOf(root: string, answer = "'ready'") {
  const watched: string[] = []
  Object.assign(globalThis, { dshWatched: watched })
  const { streams } = createStreams()
  const path = await config('- name: ./hmr.ts\n- name: ./plugin.ts\n', {
    'hmr.ts': hotReload(root, answer),
    'plugin.ts': 'export function apply() {}\n',
  })
  const app = await boot(path, { streams })
  onTestFinished(() => void app.dispose())
  return { watched, folder: dirname(path) }
}

describe('what hot reload watches', () => {
  test('is every loaded file once, the yml too, and nothing of installed packages', async () => {
    const { watched, folder } = await watchedOf('[]')

    expect(watched).toContain(join(folder, 'plugin.ts'))
    expect(watched).toContain(join(folder, 'dsh.yml'))
    expect(new Set(watched).size).toBe(watched.length)
    expect(watched.join('\n')).not.toContain('/node_modules/')
  })

  test('is left to the yml where that names folders', async () => {
    expect((await watchedOf("['.']")).watched).toEqual([])
  })

  test('keeps no start from its end when it cannot be watched', async () => {
    const { watched } = await watchedOf('[]', "'error', new Error('no more watchers')")

    expect(watched).not.toEqual([])
  })
})
