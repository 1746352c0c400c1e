/** Rules 2, 3 and 10: what comes back, and that it always does. */
import { describe, expect, test } from 'vitest'
import { type Behaviour, type ContractBackend, promptFor } from '../backend.ts'
import { createBench, promptly, textOf } from '../bench.ts'

export function describeResults(backend: ContractBackend): void {
  describeEnds(backend)
  describeDiagnostic(backend)
  describeOutput(backend)
  describeText(backend)
  if (backend.reportsUsage) describeUsage(backend)
  else describeNoUsage(backend)
  if (backend.isInProcess) describeTreeUsage(backend)
}

function describeEnds(backend: ContractBackend): void {
  describe('rule 2, every end is a result', () => {
    test.each<[string, Behaviour, string, string]>([
      ['completes', { does: 'answer', text: 'done' }, 'completed', 'done'],
      ['completes without a text', { does: 'answer', text: '' }, 'completed', ''],
      [
        'reaches its token limit',
        { does: 'stop', reason: 'max-tokens', text: 'half' },
        'max-tokens',
        'half',
      ],
      ['refuses', { does: 'stop', reason: 'refusal', text: 'I will not' }, 'refusal', 'I will not'],
      ['fails', { does: 'fail', text: 'half', message: 'lost' }, 'error', 'half'],
    ])('a child that %s resolves the result', async (_, behaviour, stopReason, text) => {
      const { delegate } = await createBench(backend)

      const result = await delegate(behaviour)

      expect(result.stopReason).toBe(stopReason)
      expect(textOf(result)).toBe(text)
    })

    test.each([
      ['takes too long', { timeoutMs: 300 }, /timeout/],
      ['shows no sign of life', { idleTimeoutMs: 300 }, /timeout/],
    ])('a child that %s is aborted, and the diagnostic says so', async (_, limits, expected) => {
      const { start, alive } = await createBench(backend)
      const run = start({ does: 'hang', text: '' }, limits)

      const result = await promptly(run.result, 3000)

      expect(result.stopReason).toBe('aborted')
      expect(result.diagnostic).toMatch(expected)
      await run.dispose()
      expect(alive()).toBe(0)
    })

    test('one child that fails leaves the results of its siblings alone', async () => {
      const { delegate } = await createBench(backend)

      const results = await Promise.all([
        delegate({ does: 'answer', text: 'one' }),
        delegate({ does: 'fail', text: '', message: 'lost' }),
        delegate({ does: 'answer', text: 'three' }),
      ])

      expect(results.map(({ stopReason }) => stopReason)).toEqual([
        'completed',
        'error',
        'completed',
      ])
      expect(results.map(textOf)).toEqual(['one', '', 'three'])
    })
  })
}

function describeDiagnostic(backend: ContractBackend): void {
  describe('rule 2, the diagnostic', () => {
    test('says what went wrong, and is no text of the child', async () => {
      const { delegate } = await createBench(backend)

      const { diagnostic } = await delegate({ does: 'fail', text: 'my words', message: 'lost it' })

      expect(diagnostic).toContain('lost it')
      expect(diagnostic).not.toContain('my words')
    })

    test('is at most 4 KiB', async () => {
      const { delegate } = await createBench(backend)

      const { diagnostic } = await delegate({ does: 'fail', text: '', message: 'é'.repeat(20_000) })

      expect(Buffer.byteLength(diagnostic ?? '')).toBeLessThanOrEqual(4096)
      expect(diagnostic).toContain('éééé')
    })

    test('is absent when all went well', async () => {
      const { delegate } = await createBench(backend)

      const result = await delegate({ does: 'answer', text: 'done' })

      expect(result).not.toHaveProperty('diagnostic')
    })
  })
}

function describeOutput(backend: ContractBackend): void {
  describe('rule 3, the output', () => {
    test.each([
      ['the last message', ['one', 'two', 'three'], 'three'],
      ['the last message that has text', ['one', 'two', ''], 'two'],
      ['the last message that is not blank', ['one', ' \n '], 'one'],
    ])('is %s', async (_, texts, expected) => {
      const { delegate } = await createBench(backend)

      const result = await delegate({ does: 'messages', texts })

      expect(textOf(result)).toBe(expected)
    })

    test('is empty when the child said nothing', async () => {
      const { delegate } = await createBench(backend)

      expect((await delegate({ does: 'messages', texts: ['', ''] })).output).toEqual([])
    })

    test('is what was streamed when the child was cut off', async () => {
      const { startTalking } = await createBench(backend)
      const run = await startTalking({ does: 'hang', text: 'so far' })

      run.cancel()

      expect(textOf(await run.result)).toBe('so far')
      await run.dispose()
    })

    test('is never what the parent has said', async () => {
      const { parent, delegate } = await createBench(backend)
      await parent.send(promptFor({ does: 'answer', text: 'words of the parent' }))

      const silent = await delegate({ does: 'answer', text: '' })
      const failed = await delegate({ does: 'fail', text: '', message: 'lost' })

      expect(silent.output).toEqual([])
      expect(failed.output).toEqual([])
    })
  })
}

function describeText(backend: ContractBackend): void {
  describe('rule 10, the text of a child', () => {
    test('comes back whole and unchanged', async () => {
      const { delegate } = await createBench(backend)
      const text = '{"a": 1}\r\n\t🙂é\u0007 '.repeat(10_000)

      expect(textOf(await delegate({ does: 'answer', text }))).toBe(text)
    })

    test('is well-formed, whatever the child wrote', async () => {
      const { delegate } = await createBench(backend)

      const text = textOf(await delegate({ does: 'answer', text: 'a\uD83Db' }))

      expect(text).toMatch(/^a.b$/u)
      expect(text.isWellFormed()).toBe(true)
    })

    test('cannot be changed in a result', async () => {
      const { delegate } = await createBench(backend)

      const { output } = await delegate({ does: 'answer', text: 'done' })

      expect(Object.isFrozen(output)).toBe(true)
      expect(Object.isFrozen(output[0])).toBe(true)
    })
  })
}

function describeUsage(backend: ContractBackend): void {
  describe('usage', () => {
    test('of a child is on its result', async () => {
      const { delegate } = await createBench(backend)

      const { usage } = await delegate({ does: 'answer', text: 'done' })

      expect(usage).toEqual({ inputTokens: 10, outputTokens: 5 })
    })
  })
}

function describeNoUsage(backend: ContractBackend): void {
  describe('usage', () => {
    test('of a child that tells none is absent, not zero', async () => {
      const { delegate } = await createBench(backend)

      expect(await delegate({ does: 'answer', text: 'done' })).not.toHaveProperty('usage')
    })
  })
}

function describeTreeUsage(backend: ContractBackend): void {
  describe('usage of a tree', () => {
    test('counts a child and its children once', async () => {
      const { delegate } = await createBench(backend)
      const prompt = promptFor({ does: 'answer', text: 'ok' })

      const { usage } = await delegate({ does: 'delegate', prompt, text: 'done' })

      expect(usage).toEqual({ inputTokens: 30, outputTokens: 15 })
    })
  })
}
