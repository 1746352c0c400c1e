import { execFileSync } from 'node:child_process'
import { readdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scriptedModel, waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import {
  bootTools,
  type Call,
  callingModel,
  childCount,
  createWorkspace,
  loggedResults,
  resultsOf,
} from './helpers.ts'

const png = Buffer.from('89504e470d0a1a0a0000', 'hex')

describe('the file tools', () => {
  test('let an agent find, read, edit and write files', async () => {
    const ctx = await bootTools()
    const cwd = await createWorkspace({ 'src/sum.js': 'const sum = (a, b) => a - b\n' })

    const results = await resultsOf(ctx, cwd, [
      ['glob', { pattern: '*.js' }],
      ['grep', { pattern: 'a - b' }],
      ['read', { path: 'src/sum.js' }],
      ['edit', { path: 'src/sum.js', oldText: 'a - b', newText: 'a + b' }],
      ['write', { path: 'notes/done.md', content: 'fixed\n' }],
    ])

    expect(results.map(({ text }) => text)).toEqual([
      'src/sum.js',
      'src/sum.js:1:const sum = (a, b) => a - b',
      '     1\tconst sum = (a, b) => a - b',
      'edited "src/sum.js": 1 replaced, at line 1',
      'created "notes/done.md" (6 bytes)',
    ])
    expect(results.some(({ isError }) => isError)).toBe(false)
    expect(await readFile(join(cwd, 'src/sum.js'), 'utf8')).toBe('const sum = (a, b) => a + b\n')
    expect(await readFile(join(cwd, 'notes/done.md'), 'utf8')).toBe('fixed\n')
  })

  test('tell of every refusal by code, path, reason and remedy', async () => {
    const ctx = await bootTools()
    const cwd = await createWorkspace({
      'a.txt': 'one\ntwo\none\n',
      'new.txt': 'x',
      'a.bin': Buffer.from([0]),
      huge: '',
      'dir/b': '',
    })
    await truncate(join(cwd, 'huge'), 100_000_000)
    await symlink('/etc', join(cwd, 'etc'))
    execFileSync('mkfifo', [join(cwd, 'pipe')])
    const cases: readonly (readonly [code: string, message: RegExp, ...call: Call])[] = [
      ['FILE_NOT_FOUND', /"nope" does not exist: look/, 'read', { path: 'nope' }],
      ['OUTSIDE_WORKSPACE', /"..\/..\/etc\/passwd".*stay in/, 'read', { path: '../../etc/passwd' }],
      [
        'OUTSIDE_WORKSPACE',
        /"etc\/passwd" leads to "\/etc\/passwd"/,
        'read',
        { path: 'etc/passwd' },
      ],
      ['OUTSIDE_WORKSPACE', /"\/etc".*stay in/, 'glob', { pattern: '*', path: '/etc' }],
      ['OUTSIDE_WORKSPACE', /"etc".*stay in/, 'grep', { pattern: 'x', path: 'etc' }],
      ['INVALID_PATH', /"a\\u0000b" is no path: name/, 'read', { path: 'a\0b' }],
      ['NOT_A_FILE', /"dir" is a folder: name/, 'write', { path: 'dir', content: '' }],
      ['NOT_A_FILE', /"pipe" is a pipe.*: name/, 'read', { path: 'pipe' }],
      ['BINARY_FILE', /"a.bin" is not text.*only UTF-8/, 'read', { path: 'a.bin' }],
      ['FILE_TOO_LARGE', /"huge" has 100000000 bytes.*grep/, 'read', { path: 'huge' }],
      ['NOT_READ', /read "new.txt": read it first/, 'write', { path: 'new.txt', content: '' }],
      ['OUT_OF_RANGE', /"a.txt" has 3 lines/, 'read', { path: 'a.txt', offset: 4 }],
      ['NO_MATCH', /"a.txt".*read/, 'edit', { path: 'a.txt', oldText: 'x', newText: 'y' }],
      [
        'AMBIGUOUS_MATCH',
        /lines 1, 3.*add/,
        'edit',
        { path: 'a.txt', oldText: 'one', newText: 'y' },
      ],
      ['INVALID_PATTERN', /unclosed group; write/, 'grep', { pattern: '(' }],
      ['INVALID_ARGUMENTS', /offset/, 'read', { path: 'a.txt', offset: 0 }],
      ['INVALID_ARGUMENTS', /oldText/, 'edit', { path: 'a.txt', oldText: '', newText: 'y' }],
    ]

    const calls: Call[] = [
      ['read', { path: 'a.txt' }],
      ...cases.map(([, , name, input]): Call => [name, input]),
    ]
    const [, ...results] = await resultsOf(ctx, cwd, calls)

    expect(results.map(({ code }) => code)).toEqual(cases.map(([code]) => code))
    for (const [i, [, message]] of cases.entries()) expect(results[i]?.text).toMatch(message)
    expect(results.every(({ isError, text }) => isError && text.isWellFormed())).toBe(true)
    expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe('one\ntwo\none\n')
  })

  test('refuse to overwrite what changed after it was read, until it is read again', async () => {
    const ctx = await bootTools()
    const cwd = await createWorkspace({ 'a.txt': 'first\n' })
    const edit: Call = ['edit', { path: 'a.txt', oldText: 'd', newText: 'D' }]
    const calls: Call[] = [['read', { path: 'a.txt' }], edit, ['read', { path: 'a.txt' }], edit]
    ctx.llm.registerAdapter(
      scriptedModel(async (_, index) => {
        if (index === 1) await writeFile(join(cwd, 'a.txt'), 'second\n')
        const [name, input] = calls[index] ?? []
        return name === undefined ? 'done' : { calls: [{ name, input }] }
      }),
    )
    const { agent } = ctx.agents.create({ cwd })

    await agent.send('go')

    expect(loggedResults(agent).map(({ code }) => code)).toEqual([
      undefined,
      'STALE_FILE',
      undefined,
      undefined,
    ])
    expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe('seconD\n')
  })

  test('let one of two agents win that edit one file at the same time, and tell the other', async () => {
    const ctx = await bootTools()
    const cwd = await createWorkspace({ 'a.txt': 'start\n' })
    let waiting = 0
    const { promise: bothHaveRead, resolve } = Promise.withResolvers<void>()
    ctx.llm.registerAdapter(
      scriptedModel(async ({ sessionId }, index) => {
        if (index === 0) return { calls: [{ name: 'read', input: { path: 'a.txt' } }] }
        if (index > 1) return 'done'
        waiting += 1
        if (waiting === 2) resolve()
        await bothHaveRead
        const input = { path: 'a.txt', oldText: 'start', newText: `start ${sessionId}` }
        return { calls: [{ name: 'edit', input }] }
      }),
    )
    const agents = [ctx.agents.create({ cwd }).agent, ctx.agents.create({ cwd }).agent]

    await Promise.all(agents.map((agent) => agent.send('go')))

    const results = agents.map((agent) => loggedResults(agent).at(-1))
    const winner = agents[results.findIndex((result) => result?.isError === false)]
    expect(results.filter((result) => result?.code === 'STALE_FILE')).toHaveLength(1)
    expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe(`start ${winner?.id}\n`)
  })

  test('run side by side when they only look, and one by one when they change', async () => {
    const ctx = await bootTools()

    const parallel = ctx.tools.table
      .names()
      .filter((name) => {
        const found = ctx.tools.table.lookup({} as never, name)
        return found.kind === 'found' && found.tool.parallel === true
      })
      .toSorted()

    expect(parallel).toEqual(['glob', 'grep', 'read'])
  })

  test('end with the turn that is cancelled', async () => {
    const ctx = await bootTools()
    const cwd = await createWorkspace({ endless: '' })
    await truncate(join(cwd, 'endless'), 8_000_000_000_000)
    const model = callingModel([['grep', { pattern: 'x', path: 'endless' }]])
    ctx.llm.registerAdapter(model)
    const { agent } = ctx.agents.create({ cwd })

    const turn = agent.send('go')
    await waitFor('the search runs', () => childCount() === 1)
    agent.cancel('enough')

    expect(await turn).toMatchObject({ reason: 'aborted' })
    expect(loggedResults(agent).map(({ code }) => code)).toEqual(['ABORTED'])
    await waitFor('the search is gone', () => childCount() === 0)
    expect(model.requests).toHaveLength(1)
  })
})

describe('read', () => {
  test('shows a range of lines with their numbers, and how to go on', async () => {
    const ctx = await bootTools('{ maxLines: 3 }')
    const cwd = await createWorkspace({ 'a.txt': 'a\nb\nc\nd\ne\n', empty: '' })

    const results = await resultsOf(ctx, cwd, [
      ['read', { path: 'a.txt' }],
      ['read', { path: 'a.txt', offset: 4 }],
      ['read', { path: 'a.txt', offset: 2, limit: 1 }],
      ['read', { path: 'a.txt', limit: 100 }],
      ['read', { path: 'empty' }],
    ])

    expect(results.map(({ text }) => text)).toEqual([
      '     1\ta\n     2\tb\n     3\tc\n(lines 1 to 3 of 5; read on with offset 4)',
      '     4\td\n     5\te\n(lines 4 to 5 of 5)',
      '     2\tb\n(lines 2 to 2 of 5; read on with offset 3)',
      '     1\ta\n     2\tb\n     3\tc\n(lines 1 to 3 of 5; read on with offset 4)',
      '("empty" is empty)',
    ])
  })

  test('keeps within its bytes, and never cuts a character in two', async () => {
    const ctx = await bootTools('{ maxBytes: 2000 }')
    const cwd = await createWorkspace({
      'a.txt': '😀😀\n'.repeat(1000),
      'b.txt': '😀'.repeat(9999),
    })

    const results = await resultsOf(ctx, cwd, [
      ['read', { path: 'a.txt' }],
      ['read', { path: 'b.txt', limit: 1 }],
    ])

    expect(Buffer.byteLength(results[0]?.text ?? '')).toBeLessThan(2100)
    expect(results[0]?.text).toContain('of 1000; read on with offset')
    expect(results[1]?.text).toContain('more characters)')
    expect(results.every(({ text }) => text.isWellFormed())).toBe(true)
  })

  test('shows an image to a model that takes images, whatever it is called', async () => {
    const ctx = await bootTools()
    const cwd = await createWorkspace({ 'a.JPG': png, 'b.png': 'version https://example.com' })
    const model = scriptedModel([
      { calls: [{ name: 'read', input: { path: 'a.JPG' } }] },
      { calls: [{ name: 'read', input: { path: 'b.png' } }] },
      'done',
    ])
    ctx.llm.registerAdapter({ ...model, models: [{ name: 'scripted', images: true }] })
    const { agent } = ctx.agents.create({ cwd })

    await agent.send('go')

    const [image, text] = loggedResults(agent)
    expect(image?.content).toEqual([
      { type: 'image', mediaType: 'image/png', data: png.toString('base64') },
    ])
    expect(text?.text).toBe('     1\tversion https://example.com')
  })

  test('refuses an image to a model that takes none, and one that is too large', async () => {
    const ctx = await bootTools()
    const large = Buffer.concat([png, Buffer.alloc(4_000_000)])
    const cwd = await createWorkspace({ 'a.png': png, 'large.png': large })
    const [refused] = await resultsOf(ctx, cwd, [['read', { path: 'a.png' }]])
    const model = scriptedModel([
      { calls: [{ name: 'read', input: { path: 'large.png' } }] },
      'done',
    ])
    ctx.llm.registerAdapter({ ...model, models: [{ name: 'scripted', images: true }] })
    const { agent } = ctx.agents.create({ cwd })

    await agent.send('go')

    expect(refused).toMatchObject({ isError: true, code: 'IMAGES_NOT_SUPPORTED' })
    expect(refused?.text).toContain('"a.png" is an image, which model "scripted" cannot see')
    expect(loggedResults(agent)[0]).toMatchObject({ isError: true, code: 'IMAGE_TOO_LARGE' })
  })
})

describe('glob and grep', () => {
  test('say when nothing matches, and when there is more than they show', async () => {
    const ctx = await bootTools('{ maxResults: 2 }')
    const cwd = await createWorkspace({ a: 'x\nx\nx\n', b: '', c: '', 'line\nend': 'y' })

    const results = await resultsOf(ctx, cwd, [
      ['glob', { pattern: '*' }],
      ['glob', { pattern: 'nope' }],
      ['glob', { pattern: 'line*' }],
      ['grep', { pattern: 'x' }],
      ['grep', { pattern: 'X', ignoreCase: true, glob: 'a', path: '.' }],
      ['grep', { pattern: 'nope' }],
    ])

    expect(results.map(({ text }) => text)).toEqual([
      'a\nb\n(more files match than the 2 above: narrow the search)',
      '(no files match)',
      '"line\\nend"',
      'a:1:x\na:2:x\n(more lines match than the 2 above: narrow the search)',
      'a:1:x\na:2:x\n(more lines match than the 2 above: narrow the search)',
      '(no lines match)',
    ])
    expect(await readdir(cwd)).toHaveLength(4)
  })
})
