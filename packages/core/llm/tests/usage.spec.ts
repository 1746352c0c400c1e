import { describe, expect, test } from 'vitest'
import { addUsage, noUsage, type Usage } from '../src/index.ts'

describe('addUsage', () => {
  test.each<[string, Usage, Usage, Usage]>([
    [
      'adds what both sides have',
      { inputTokens: 1, outputTokens: 2, cachedInputTokens: 3, reasoningTokens: 4 },
      { inputTokens: 10, outputTokens: 20, cachedInputTokens: 30, reasoningTokens: 40 },
      { inputTokens: 11, outputTokens: 22, cachedInputTokens: 33, reasoningTokens: 44 },
    ],
    [
      'keeps an optional count that one side has',
      { inputTokens: 1, outputTokens: 1, cachedInputTokens: 5 },
      { inputTokens: 1, outputTokens: 1, reasoningTokens: 7 },
      { inputTokens: 2, outputTokens: 2, cachedInputTokens: 5, reasoningTokens: 7 },
    ],
    [
      'leaves out an optional count that neither side has',
      { inputTokens: 1, outputTokens: 1 },
      { inputTokens: 1, outputTokens: 1 },
      { inputTokens: 2, outputTokens: 2 },
    ],
  ])('%s', (_, a, b, sum) => {
    expect(addUsage(a, b)).toStrictEqual(sum)
  })

  test('gives the other side itself when one is nothing', () => {
    const usage: Usage = { inputTokens: 3, outputTokens: 4 }

    const sums = [addUsage(noUsage, usage), addUsage(usage, noUsage)]

    expect(sums[0]).toBe(usage)
    expect(sums[1]).toBe(usage)
  })
})
