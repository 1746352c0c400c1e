import type { SubagentActivity, SubagentRunId } from '@deepseek-ai/dsh-subagent'
import { describe, expect, test, vi } from 'vitest'
import { Lines } from '../src/wire.ts'
import { createBench, delegateOnce, fixture, textOf } from './helpers.ts'

function linesOf(...chunks: readonly (string | Buffer)[]): { lines: string[]; rest: string } {
  const lines = new Lines(1000)
  const found = chunks.flatMap((chunk) =>
    Array.from(lines.push(Buffer.from(chunk as string)), (line) => line.toString()),
  )
  return { lines: found, rest: lines.take().toString() }
}

/** How many bytes are looked at, and copied, to cut one line of `count` chunks. */
function workOn(count: number): { seen: number; copied: number } {
  const lines = new Lines(Infinity)
  const chunk = Buffer.alloc(1024, 'x')
  const last = Buffer.from('x\n')
  const work = { seen: 0, copied: 0 }
  const concat = Buffer.concat.bind(Buffer)
  const copying = vi.spyOn(Buffer, 'concat').mockImplementation((pieces) => {
    const whole = concat(pieces)
    work.copied += whole.length
    return whole
  })
  const { indexOf } = Buffer.prototype
  const looking = vi.spyOn(Buffer.prototype, 'indexOf').mockImplementation(function (
    this: Buffer,
    value,
    from = 0,
  ) {
    work.seen += this.length - Number(from)
    return indexOf.call(this, value, Number(from))
  })

  for (let index = 0; index < count; index += 1) lines.push(chunk).next()
  const [line] = lines.push(last)

  copying.mockRestore()
  looking.mockRestore()
  expect(line?.length).toBe(count * 1024 + 1)
  return work
}

describe('Lines', () => {
  test.each<[string, string[], string[], string]>([
    ['whole lines', ['a\nb\n'], ['a', 'b'], ''],
    ['lines over chunks', ['a', 'b\nc', 'd', '\n'], ['ab', 'cd'], ''],
    ['empty lines', ['\n\na\n'], ['', '', 'a'], ''],
    ['a last line without an end', ['a\nb'], ['a'], 'b'],
    ['empty chunks', ['', 'a', '', '\n'], ['a'], ''],
  ])('cuts %s', (_name, chunks, lines, rest) => {
    expect(linesOf(...chunks)).toEqual({ lines, rest })
  })

  test('keeps a character whose bytes come in two chunks', () => {
    const bytes = Buffer.from('é\n')

    expect(linesOf(bytes.subarray(0, 1), bytes.subarray(1)).lines).toEqual(['é'])
  })

  test('looks at each byte once and copies it once, however many chunks make a line', () => {
    expect(workOn(10_000)).toEqual({ seen: 10_000 * 1024 + 2, copied: 10_000 * 1024 + 1 })
  })

  test('refuses a line that is too long, and forgets it', () => {
    const lines = new Lines(5)

    expect(() => [...lines.push(Buffer.from('123456'))]).toThrow(
      'the agent wrote a line of more than 5 bytes',
    )
    expect(lines.take().length).toBe(0)
  })
})

describe('a run whose agent', () => {
  test('writes banners, half lines, logs and no last line end loses no message', async () => {
    const result = await delegateOnce(fixture('noisy'))

    expect(result).toEqual({ output: [{ type: 'text', text: 'one two' }], stopReason: 'completed' })
  })

  test('fails tells what it wrote beside the protocol', async () => {
    const { diagnostic } = await delegateOnce({ command: 'sh', args: ['-c', 'echo hi; exit 4'] })

    expect(diagnostic).toBe(
      'the agent "sh" exited with code 4 at initialize: a command that speaks the Agent Client Protocol on stdin and stdout is expected\nstdout: hi',
    )
  })

  test('splits characters over writes is understood', async () => {
    const text = 'ä€𝄞 \u0000 "quoted" \u2028 end'

    const result = await delegateOnce(fixture('split'), text)

    expect(textOf(result)).toBe(text)
  })

  test.each([
    ['one message', 'line'],
    ['ten thousand messages', 'pieces'],
  ])('says 10 MB in pieces of 1 KB as %s is heard in full', async (_name, how) => {
    const result = await delegateOnce(fixture('huge', how, '10240', '1024'))

    expect(result.stopReason).toBe('completed')
    expect(textOf(result)).toBe('x'.repeat(10 * 1024 * 1024))
  })

  test('writes a line without end fails, and says why', async () => {
    const result = await delegateOnce(fixture('huge', 'line', '33000', '1024'))

    expect(result).toEqual({
      output: [],
      stopReason: 'error',
      diagnostic: 'the agent wrote a line of more than 33554432 bytes',
    })
  })

  test('sends updates of other sessions, unknown kinds and unknown answers loses no text', async () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => {})

    const result = await delegateOnce(fixture('foreign'))

    expect(result).toEqual({ output: [{ type: 'text', text: 'ab' }], stopReason: 'completed' })
    expect(report).not.toHaveBeenCalled()
    report.mockRestore()
  })

  test('sends updates of any kind shows with each of its session that it lives', async () => {
    const { ctx, parent } = await createBench(fixture('foreign'))
    const heard: SubagentActivity[] = []
    const run = ctx.subagents.getProvider('acp')?.start(
      { prompt: 'go', parent },
      {
        runId: 'run' as SubagentRunId,
        childId: parent.id,
        depth: 1,
        report: (activity) => heard.push(activity),
      },
    )

    await run?.result
    await run?.dispose()

    const texts = heard.map((activity) => 'text' in activity && activity.text)
    expect(texts).toEqual(['a', '', '', '', '', 'b'])
  })

  test('asks for what is not served gets the answer that there is no such method', async () => {
    const requests = [
      ['fs/read_text_file', { sessionId: 's', path: '/etc/passwd' }],
      ['fs/write_text_file', { sessionId: 's', path: '/tmp/x', content: '' }],
      ['terminal/create', { sessionId: 's', command: 'ls' }],
      ['elicitation/create', {}],
      ['vendor/ask', {}],
    ]

    const result = await delegateOnce(fixture('asks'), JSON.stringify(requests))

    expect(textOf(result)).toBe(JSON.stringify(requests.map(() => -32_601)))
  })

  test('answers null where an object is due fails without harm to the host', async () => {
    const prompt = await delegateOnce(fixture('answers', 'session/prompt', 'null', 'so far'))
    const session = await delegateOnce(fixture('answers', 'session/new', 'null'))
    const initialize = await delegateOnce(fixture('answers', 'initialize', 'null'))

    expect(prompt).toEqual({
      output: [{ type: 'text', text: 'so far' }],
      stopReason: 'error',
      diagnostic: 'the agent ended its turn with the unknown stop reason undefined',
    })
    expect(session.diagnostic).toBe('the agent answered session/new without a sessionId')
    expect(initialize.diagnostic).toMatch(/^the agent speaks version undefined/)
  })

  test('sends the last pieces right after its response is heard out', async () => {
    const result = await delegateOnce(fixture('late'))

    expect(textOf(result)).toBe('just in time')
  })

  test('sends all that it says a moment after its response is waited for', async () => {
    const result = await delegateOnce(fixture('late', 'all'))

    expect(textOf(result)).toBe('late')
  })
})

describe('pieces that come after the end of a run', () => {
  test('show in no other run', async () => {
    const { start } = await createBench(fixture('late', 'all'))
    const first = start()
    await first.result

    const second = start()
    const { output } = await second.result

    expect(output).toEqual([{ type: 'text', text: 'late' }])
    await Promise.all([first.dispose(), second.dispose()])
  })
})
