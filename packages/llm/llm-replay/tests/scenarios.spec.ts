import type { ModelRequest } from '@deepseek-ai/dsh-llm'
import type { ScriptedReply } from '@deepseek-ai/dsh-testkit'
import { describe, expect, test } from 'vitest'
import {
  delegating,
  fixturePath,
  isAnswered,
  promptOf,
  record,
  replay,
  resultsOf,
  type Scenario,
} from './helpers.ts'

const never = new Promise<never>(() => {})

/** Answers by prompt; the parent, when its children have answered, counts them. */
function script(replies: Readonly<Record<string, string | ScriptedReply>>) {
  return (request: ModelRequest): string | ScriptedReply => {
    if (isAnswered(request)) return `I have ${resultsOf(request).length} results`
    if (promptOf(request) === 'say what you know') return `${request.messages.length} messages`
    return replies[promptOf(request)] ?? `re: ${promptOf(request)}`
  }
}

const five = ['a', 'b', 'c', 'd', 'e']

const scenarios: Readonly<Record<string, Scenario>> = {
  'one-spawn-child': {
    prompts: ['delegate'],
    script: script({
      delegate: delegating({ provider: 'spawn', callId: 'look', prompt: 'look around' }),
    }),
  },
  'two-sequential-children': {
    prompts: ['delegate', 'once more'],
    script: script({
      delegate: delegating({ provider: 'spawn', callId: 'first', prompt: 'the first task' }),
      'once more': delegating({ provider: 'spawn', callId: 'second', prompt: 'the second task' }),
    }),
  },
  'five-parallel-children': {
    prompts: ['delegate'],
    script: (request) => {
      const prompt = promptOf(request)
      if (prompt === 'delegate') {
        return isAnswered(request)
          ? 'all five are back'
          : delegating(
              ...five.map((callId) => ({
                provider: 'spawn' as const,
                callId,
                prompt: `task ${callId}`,
              })),
            )
      }
      const name = prompt.slice(-1)
      return isAnswered(request)
        ? `${name} is done`
        : { text: `${name} waits`, calls: [{ name: 'wait', callId: 'wait', input: { name } }] }
    },
    order: five,
  },
  'fork-with-codeword': {
    prompts: ['the codeword is swan', 'ask a fork'],
    script: (request) => {
      if (isAnswered(request)) return 'the fork knew it'
      const prompt = promptOf(request)
      if (prompt === 'ask a fork')
        return delegating({ provider: 'fork', callId: 'ask', prompt: 'what is the codeword?' })
      if (prompt !== 'what is the codeword?') return 'I remember it'
      return JSON.stringify(request.messages).includes('the codeword is swan') ? 'swan' : 'what?'
    },
  },
  'spawn-and-fork': {
    prompts: ['hello', 'delegate'],
    script: script({
      delegate: delegating(
        { provider: 'spawn', callId: 'fresh', prompt: 'say what you know' },
        { provider: 'fork', callId: 'twin', prompt: 'say what you know' },
        { provider: 'spawn', callId: 'deep', prompt: 'delegate further' },
      ),
      'delegate further': delegating({
        provider: 'fork',
        callId: 'deeper',
        prompt: 'a fork of a child',
      }),
    }),
  },
  'child-at-the-depth-cap': {
    prompts: ['delegate'],
    maxDepth: 1,
    script: script({
      delegate: delegating({ provider: 'spawn', callId: 'child', prompt: 'delegate further' }),
      'delegate further': delegating({
        provider: 'spawn',
        callId: 'grandchild',
        prompt: 'too deep',
      }),
    }),
  },
  'child-at-its-token-limit': {
    prompts: ['delegate'],
    script: script({
      delegate: delegating({ provider: 'spawn', callId: 'long', prompt: 'write a book' }),
      'write a book': { text: 'Chapter one. It was a', finish: 'max-tokens' },
    }),
  },
  'one-of-two-siblings-cancelled': {
    prompts: ['delegate'],
    script: script({
      delegate: delegating(
        { provider: 'spawn', callId: 'stays', prompt: 'stay', until: 'never ending' },
        { provider: 'spawn', callId: 'leaves', prompt: 'leave', until: 'never ending' },
      ),
      stay: 'I stay to the end',
      leave: { text: 'a never ending story', until: never },
    }),
  },
}

describe.each(Object.entries(scenarios))('the scenario %s', (name, scenario) => {
  test('is recorded as it was, whenever it is', async () => {
    const run = await record(scenario)

    await expect(run.fixture).toMatchFileSnapshot(fixturePath(`${name}.json`))
    await expect(run.story).toMatchFileSnapshot(fixturePath(`${name}.log`))
  })

  test('is replayed without a model to the same logs', async () => {
    const { story } = await replay(fixturePath(`${name}.json`), scenario)

    await expect(story).toMatchFileSnapshot(fixturePath(`${name}.log`))
  })
})

describe('five parallel children', () => {
  test.each([
    ['the last first', ['e', 'd', 'c', 'b', 'a']],
    ['from the middle', ['c', 'b', 'd', 'a', 'e']],
    ['turned by two', ['c', 'd', 'e', 'a', 'b']],
    ['every second one', ['b', 'd', 'a', 'c', 'e']],
    ['the first one last', ['b', 'c', 'd', 'e', 'a']],
  ])('give the same logs when they end %s', async (_, order) => {
    const name = 'five-parallel-children'

    const { story } = await replay(fixturePath(`${name}.json`), { prompts: ['delegate'], order })

    await expect(story).toMatchFileSnapshot(fixturePath(`${name}.log`))
  })

  test('give the same fixture when they end in another order while they are recorded', async () => {
    const name = 'five-parallel-children'
    const scenario = { ...scenarios[name]!, order: ['d', 'b', 'e', 'c', 'a'] }

    await expect((await record(scenario)).fixture).toMatchFileSnapshot(fixturePath(`${name}.json`))
  })
})
