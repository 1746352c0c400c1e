import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { boot, type FrontEnd } from '@deepseek-ai/dsh-app'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { config, createStreams } from './helpers.ts'

const tracked = `
export const inject = ['app']
export function apply(ctx) {
  globalThis.dshTest.push('loaded')
  ctx.effect(() => () => globalThis.dshTest.push('disposed'))
}
`

/** What the plugins of a test leave behind, in order. */
function trace(): string[] {
  const list: string[] = []
  Object.assign(globalThis, { dshTest: list })
  return list
}

describe('boot', () => {
  test('settles when every entry has loaded, and disposes them all', async () => {
    const seen = trace()
    const { streams, stderr } = createStreams()
    const path = await config('- name: ./a.ts\n- name: ./b.ts\n', {
      'a.ts': tracked,
      'b.ts': tracked,
    })

    const app = await boot(path, { streams })
    expect(seen).toEqual(['loaded', 'loaded'])
    expect(await app.dispose()).toBe(true)

    expect(seen).toEqual(['loaded', 'loaded', 'disposed', 'disposed'])
    expect(stderr()).toBe('')
  })

  test('leaves nothing running when an entry fails', async () => {
    const seen = trace()
    const path = await config('- name: ./a.ts\n- name: ./gone.ts\n', { 'a.ts': tracked })

    const booting = boot(path, createStreams())

    await expect(booting).rejects.toMatchObject({ code: 'BOOT_FAILED' })
    await expect(booting).rejects.toThrow(
      /^cannot start ".*dsh\.yml":\n {2}entry "\.\/gone\.ts": [^\n]*$/,
    )
    expect(seen).toEqual(['loaded', 'disposed'])
  })

  test('gives the request its defaults', async () => {
    const app = await boot(await config('[]'), createStreams())
    onTestFinished(() => void app.dispose())

    expect(app.ctx.app.request).toEqual({ output: 'text', cwd: process.cwd() })
  })

  test('waits for a plugin below an entry that provides what another entry needs', async () => {
    const seen = trace()
    const path = await config('- name: ./needs.ts\n- name: ./gives.ts\n', {
      'needs.ts':
        "export const inject = ['late']\nexport function apply() {\n  globalThis.dshTest.push('late is there')\n}\n",
      'gives.ts': `
        import { setTimeout as delay } from 'node:timers/promises'
        export function apply(ctx) {
          ctx.plugin({ name: 'below', async apply(inner) { await delay(50); inner.provide('late', {}) } })
        }
      `,
    })

    const app = await boot(path, createStreams())
    onTestFinished(() => void app.dispose())

    expect(seen).toEqual(['late is there'])
  })

  test('gives up when the signal is aborted', async () => {
    const seen = trace()
    const path = await config('- name: ./slow.ts\n- name: ./a.ts\n', {
      'slow.ts':
        'export async function apply() {\n  globalThis.dshTest.push("slow")\n  await new Promise((resolve) => { globalThis.dshTestGo = resolve })\n}\n',
      'a.ts': tracked,
    })
    const controller = new AbortController()

    const booting = boot(path, { ...createStreams(), signal: controller.signal })
    await waitFor('it loads', () => seen.length === 2)
    controller.abort()
    await waitFor('the rest is disposed', () => seen.includes('disposed'))
    ;(globalThis as unknown as { dshTestGo(): void }).dshTestGo()

    await expect(booting).rejects.toMatchObject({ code: 'INTERRUPTED' })
  })

  test('waits for the disposal no longer than it is told, and names what remains', async () => {
    const yml =
      '- name: ./a.ts\n- name: cordis:group\n  group: true\n  config:\n    - name: ./stuck.ts\n- { id: two, name: ./stuck.ts }\n'
    const path = await config(yml, {
      'a.ts': 'export function apply() {}\n',
      'stuck.ts':
        'export function apply(ctx) {\n  ctx.effect(() => () => new Promise(() => {}))\n}\n',
    })
    const app = await boot(path, createStreams())

    expect(app.remaining()).toEqual([])
    expect(await app.dispose(20)).toBe(false)
    expect(app.remaining()).toEqual([
      'entry "./stuck.ts" (id "two")',
      expect.stringMatching(/^entry "\.\/stuck\.ts" \(.*dsh\.yml:5\)$/) as string,
    ])
  })

  test('prints what plugins warn of, short and after the boot', async () => {
    const { streams, stderr } = createStreams()
    const path = await config('- name: ./warns.ts\n', {
      'warns.ts': `
        export const name = 'warns'
        export function apply(ctx) {
          ctx.logger.info('not for everybody')
          ctx.logger.warn('mind %s', 'this')
          ctx.logger.warn(new Error('outer', { cause: new Error('inner') }))
        }
      `,
    })

    const app = await boot(path, { streams })
    onTestFinished(() => void app.dispose())

    expect(stderr().split('\n')).toEqual([
      '[warn] warns: mind this',
      expect.stringMatching(
        /^\[warn\] warns: outer \(.*warns\.ts:6\): inner \(.*warns\.ts:6\)$/,
      ) as string,
      '',
    ])
  })

  test('names the entries that keep it waiting', async () => {
    const { streams, stderr } = createStreams()
    const path = await config('- name: ./slow.ts\n', {
      'slow.ts':
        'export async function apply() {\n  await new Promise((resolve) => { globalThis.dshTestGo = resolve })\n}\n',
    })

    const booting = boot(path, { streams, slowMs: 1 })
    await waitFor('it is told', () => stderr() === 'still starting: entry "./slow.ts"\n')
    ;(globalThis as unknown as { dshTestGo(): void }).dshTestGo()

    expect(await (await booting).dispose()).toBe(true)
  })
})

const slow = `
import { setTimeout as delay } from 'node:timers/promises'
export async function apply() {
  await delay(50)
  globalThis.dshTest.push('slow is there')
}
`

/** What the front end of the test does when it serves. */
function serveWith(
  serve: (
    request: unknown,
    control: Parameters<FrontEnd['serve']>[1],
    config: { n: number },
  ) => Promise<number>,
): void {
  Object.assign(globalThis, { dshTestServe: serve })
}

test('a plugin that disposes itself does not change the yml', async () => {
  const yml = '# a comment\n- name: ./leaves.ts\n'
  const path = await config(yml, {
    'leaves.ts': 'export function apply(ctx) {\n  setImmediate(() => ctx.fiber.dispose())\n}\n',
  })
  const app = await boot(path, createStreams())
  const [, entry] = app.ctx.loader.entries()
  await waitFor('it is gone', () => entry?.disabled === true)

  expect(await app.dispose()).toBe(true)
  expect(await readFile(path, 'utf8')).toBe(yml)
})

describe('serve', () => {
  const reloadable = `
export const inject = ['app']
export function apply(ctx, config) {
  ctx.app.registerFrontEnd({ name: 'test', serve: (request, control) => globalThis.dshTestServe(request, control, config) })
}
`

  async function booted(request: { prompt?: string } = {}) {
    const path = await config('- name: ./front.ts\n  config: { n: 1 }\n', {
      'front.ts': reloadable,
      'slow.ts': slow,
    })
    const { streams, stderr } = createStreams()
    const app = await boot(path, { streams, request })
    onTestFinished(() => void app.dispose())
    const include = [...app.ctx.loader.entries()]
      .map(({ subtree }) => subtree)
      .find(Boolean) as unknown as { refresh(): Promise<void> }
    const change = async (yml: string): Promise<void> => {
      await writeFile(join(dirname(path), 'dsh.yml'), yml)
      await include.refresh()
    }
    return { app, change, stderr }
  }

  test('hands the request to the front end and gives its code', async () => {
    serveWith(async () => 7)
    const { app } = await booted()

    expect(await app.serve(new AbortController().signal)).toBe(7)
  })

  test('refuses to serve without a front end', async () => {
    const app = await boot(await config('[]'), createStreams())
    onTestFinished(() => void app.dispose())

    await expect(app.serve(new AbortController().signal)).rejects.toMatchObject({
      code: 'NO_FRONT_END',
    })
  })

  test('passes SIGINT to the front end that takes it', async () => {
    let interrupts = 0
    const done = Promise.withResolvers<number>()
    serveWith((_request, { onInterrupt }) => {
      onInterrupt(() => (interrupts += 1))
      return done.promise
    })
    const { app } = await booted()

    expect(app.interrupt()).toBe(false)
    const serving = app.serve(new AbortController().signal)
    expect(app.interrupt()).toBe(true)
    done.resolve(0)
    await serving

    expect(app.interrupt()).toBe(false)
    expect(interrupts).toBe(1)
  })

  test('serves anew when the front end is reloaded', async () => {
    const served: number[] = []
    serveWith((_request, { signal }, { n }) => {
      served.push(n)
      return n === 2
        ? Promise.resolve(5)
        : new Promise((resolve) => signal.addEventListener('abort', () => resolve(0)))
    })
    const { app, change } = await booted()

    const serving = app.serve(new AbortController().signal)
    await change('- name: ./front.ts\n  config: { n: 2 }\n')

    expect(await serving).toBe(5)
    expect(served).toEqual([1, 2])
  })

  test('waits until everything is at rest before it serves anew', async () => {
    const seen = trace()
    serveWith((_request, { signal }, { n }) => {
      seen.push(`serve ${n}`)
      return n === 2
        ? Promise.resolve(2)
        : new Promise((resolve) => signal.addEventListener('abort', () => resolve(0)))
    })
    const { app, change } = await booted()

    const serving = app.serve(new AbortController().signal)
    await change('- name: ./front.ts\n  config: { n: 2 }\n- name: ./slow.ts\n')

    expect(await serving).toBe(2)
    expect(seen).toEqual(['serve 1', 'slow is there', 'serve 2'])
  })

  test('does not ask twice: a prompt ends with the front end that had it', async () => {
    serveWith(
      (_request, { signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve(0))),
    )
    const { app, change } = await booted({ prompt: 'hi' })

    const serving = app.serve(new AbortController().signal)
    serving.catch(() => {})
    await change('- name: ./front.ts\n  config: { n: 2 }\n')

    await expect(serving).rejects.toMatchObject({ code: 'FRONT_END_GONE' })
  })

  test('tells what a reloaded front end cannot do, and tries again after the next change', async () => {
    serveWith((_request, { signal }, { n }) => {
      if (n === 2) return Promise.reject(new Error('no model'))
      return n === 3
        ? Promise.resolve(3)
        : new Promise((resolve) => signal.addEventListener('abort', () => resolve(0)))
    })
    const { app, change, stderr } = await booted()

    const serving = app.serve(new AbortController().signal)
    await change('- name: ./front.ts\n  config: { n: 2 }\n')
    await waitFor('it is told', () => stderr().includes('[error] dsh: no model'))
    await change('- name: ./front.ts\n  config: { n: 3 }\n')

    expect(await serving).toBe(3)
  })

  test('is not kept from a reload by a listener that throws, which is told', async () => {
    serveWith((_request, { signal }, { n }) =>
      n === 2
        ? Promise.resolve(2)
        : new Promise((resolve) => signal.addEventListener('abort', () => resolve(0))),
    )
    const { app, change, stderr } = await booted()
    app.ctx.on('app/changed', () => {
      throw new Error('no luck')
    })

    const serving = app.serve(new AbortController().signal)
    await change('- name: ./front.ts\n  config: { n: 2 }\n')

    expect(await serving).toBe(2)
    await waitFor('it is told', () => stderr().includes('a listener of "app/changed" failed'))
  })

  test('ends with the signal while no front end is there', async () => {
    serveWith(
      (_request, { signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve(0))),
    )
    const { app, change } = await booted()
    const controller = new AbortController()

    const serving = app.serve(controller.signal)
    await change('[]\n')
    controller.abort()

    expect(await serving).toBe(0)
  })
})
