import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RequestError } from '@agentclientprotocol/sdk'
import { waitFor } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import { start } from './helpers.ts'

const never = new Promise(() => {})
const refuse = () => Promise.reject(RequestError.internalError({}, 'read only'))
const read = (path: string) => ({ name: 'read', input: { path } })
const write = (path: string, content: string) => ({ name: 'write', input: { path, content } })
const edit = (path: string, oldText: string, newText: string) => ({
  name: 'edit',
  input: { path, oldText, newText },
})

describe('files of a client', () => {
  test('are read with what is not saved, and changed through the client alone', async () => {
    const calls = [read('a.txt'), edit('a.txt', 'unsaved', 'changed'), read('a.txt')]
    const editor = await start({ calls })
    const path = join(editor.folder, 'a.txt')
    await writeFile(path, 'saved\n')
    editor.buffers.set(path, 'unsaved\n')
    const sessionId = await editor.open()

    expect(await editor.prompt(sessionId)).toBe('end_turn')

    expect(editor.results(sessionId)).toEqual([
      '     1\tunsaved',
      'edited "a.txt": 1 replaced, at line 1',
      '     1\tchanged',
    ])
    expect(editor.buffers.get(path)).toBe('changed\n')
    expect(await readFile(path, 'utf8')).toBe('saved\n')
    const request = {
      method: 'fs/write_text_file',
      params: { sessionId, path, content: 'changed\n' },
    }
    expect(editor.requests).toContainEqual(request)
  })

  test.each([
    ['that it does not know the file', () => Promise.reject(RequestError.resourceNotFound('x'))],
    ['with an error of its own', () => Promise.reject(RequestError.internalError('ENOENT'))],
    ['with nothing', () => ({ content: '' })],
  ])('are created, also in new folders, where the client says %s', async (_, answer) => {
    const calls = [read('new/a.txt'), write('new/a.txt', 'hello\n')]
    const editor = await start({ calls, faults: { 'fs/read_text_file': answer } })
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)).toEqual([
      expect.stringMatching(/^FILE_NOT_FOUND: .*"new\/a.txt" does not exist/),
      'created "new/a.txt" (6 bytes)',
    ])
    expect(editor.buffers.get(join(editor.folder, 'new/a.txt'))).toBe('hello\n')
    expect(await readdir(editor.folder)).toEqual(['new'])
  })

  test('must be read before they are changed, also those that only the editor has', async () => {
    const editor = await start({ calls: [write('a.txt', 'mine\n')] })
    const path = join(editor.folder, 'a.txt')
    editor.buffers.set(path, 'of the user\n')
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)).toEqual([expect.stringMatching(/^NOT_READ/)])
    expect(editor.buffers.get(path)).toBe('of the user\n')
  })

  test('are not changed when the user has typed since they were read', async () => {
    const editor = await start({
      calls: [read('a.txt'), write('a.txt', 'mine\n')],
      faults: {
        'fs/read_text_file': ({ path }: { path: string }) => {
          const content = editor.buffers.get(path)
          editor.buffers.set(path, `${content}typed\n`)
          return { content }
        },
      },
    })
    await writeFile(join(editor.folder, 'a.txt'), 'saved\n')
    editor.buffers.set(join(editor.folder, 'a.txt'), 'one\n')
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)[1]).toMatch(/^STALE_FILE/)
    expect(editor.methods()).not.toContain('fs/write_text_file')
  })

  test('may be changed twice though the client keeps other line ends', async () => {
    const calls = [read('a.txt'), edit('a.txt', 'one', '1'), edit('a.txt', 'two', '2')]
    const editor = await start({
      calls,
      faults: {
        'fs/write_text_file': ({ path, content }: { path: string; content: string }) => {
          editor.buffers.set(path, content.replaceAll('\n', '\r\n'))
          return null
        },
      },
    })
    const path = join(editor.folder, 'a.txt')
    await writeFile(path, 'one\ntwo\n')
    editor.buffers.set(path, 'one\ntwo\n')
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)[2]).toBe('edited "a.txt": 1 replaced, at line 2')
  })

  test('outside of the workspace are refused without asking the client', async () => {
    const editor = await start({ calls: [read('/etc/hostname'), write('../x', '')] })
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    for (const result of editor.results(sessionId)) expect(result).toMatch(/^OUTSIDE_WORKSPACE/)
    expect(editor.methods()).toEqual([])
  })

  test('that are binary are told by the disk', async () => {
    const editor = await start({ calls: [read('a.bin')] })
    await writeFile(join(editor.folder, 'a.bin'), 'a\0b')
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)[0]).toMatch(/^BINARY_FILE/)
    expect(editor.methods()).toEqual([])
  })

  test.each([
    ['refuses', () => Promise.reject(RequestError.internalError({}, 'private'))],
    ['answers with nonsense', () => ({ content: 7 })],
  ])('fail the call when the client %s, and the disk is not used instead', async (_, answer) => {
    const editor = await start({ calls: [read('a.txt')], faults: { 'fs/read_text_file': answer } })
    await writeFile(join(editor.folder, 'a.txt'), 'secret\n')
    const sessionId = await editor.open()

    expect(await editor.prompt(sessionId)).toBe('end_turn')

    const [result] = editor.results(sessionId)
    expect(result).toMatch(/^FILE_FAILED: .*"a.txt" cannot be read: the client/)
    expect(result).not.toContain('secret')
  })

  test('that the client refuses to write are not written', async () => {
    const calls = [write('a.txt', 'x')]
    const editor = await start({ calls, faults: { 'fs/write_text_file': refuse } })
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)[0]).toMatch(
      /^FILE_FAILED: .*"a.txt" cannot be written.*read only/,
    )
    await expect(readFile(join(editor.folder, 'a.txt'))).rejects.toThrow('ENOENT')
  })

  test('that the client does not know are not read from the disk', async () => {
    const editor = await start({ calls: [read('a.txt')] })
    await writeFile(join(editor.folder, 'a.txt'), 'x')
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.results(sessionId)[0]).toMatch(/^FILE_NOT_FOUND: .*the editor says/)
  })

  test.each(['fs/read_text_file', 'fs/write_text_file'])(
    'end with the cancel while the client hangs in %s',
    async (method) => {
      const calls = [method === 'fs/read_text_file' ? read('a.txt') : write('b.txt', 'x')]
      const editor = await start({ calls, faults: { [method]: () => never } })
      await writeFile(join(editor.folder, 'a.txt'), 'x')
      const sessionId = await editor.open()
      const prompting = editor.prompt(sessionId)
      await waitFor('the client is asked', () => editor.methods().includes(method))

      await editor.cancel(sessionId)

      expect(await prompting).toBe('cancelled')
      expect(editor.results(sessionId)).toEqual([expect.stringMatching(/^ABORTED/)])
    },
  )

  test.each(['fs/read_text_file', 'fs/write_text_file'])(
    'reject at once with the abort while the client hangs in %s',
    async (method) => {
      const editor = await start({ calls: [], faults: { [method]: () => never } })
      const agent = { cwd: editor.folder, id: await editor.open() }
      const controller = new AbortController()
      const { signal } = controller
      const accessing =
        method === 'fs/read_text_file'
          ? editor.ctx.fs.readText(agent, 'a.txt', signal)
          : editor.ctx.fs.write(agent, 'a.txt', 'x', signal)
      await waitFor('the client is asked', () => editor.methods().includes(method))

      controller.abort(new Error('enough'))

      await expect(accessing).rejects.toThrow('enough')
    },
  )

  test.each([
    ['write', { readTextFile: true, writeTextFile: false }],
    ['read', { readTextFile: false, writeTextFile: true }],
  ])('are those of the disk where the client does not offer to %s', async (_, fs) => {
    const editor = await start({
      calls: [read('a.txt'), edit('a.txt', 'saved', 'changed')],
      capabilities: { fs },
      expectErrors: /^[^\n]*the client offers no files: those of this machine are used[^\n]*\n$/,
    })
    const path = join(editor.folder, 'a.txt')
    await writeFile(path, 'saved\n')
    editor.buffers.set(path, 'unsaved\n')
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(await readFile(path, 'utf8')).toBe('changed\n')
    expect(editor.methods()).toEqual([])
  })

  test('show the unsaved text as the old one of a write', async () => {
    const editor = await start({ calls: [read('a.txt'), write('a.txt', 'new\n')] })
    const path = join(editor.folder, 'a.txt')
    await writeFile(path, 'saved\n')
    editor.buffers.set(path, 'unsaved\n')
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(editor.shown).toContainEqual({
      type: 'diff',
      path,
      oldText: 'unsaved\n',
      newText: 'new\n',
    })
  })

  test('are left alone when the config says so', async () => {
    const editor = await start({ calls: [write('a.txt', 'x')], config: { files: false } })
    const sessionId = await editor.open()

    await editor.prompt(sessionId)

    expect(await readFile(join(editor.folder, 'a.txt'), 'utf8')).toBe('x')
    expect(editor.methods()).toEqual([])
  })
})
