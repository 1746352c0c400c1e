import { describe, expect, test } from 'vitest'
import { LogChecker, violationsOf } from '../src/index.ts'
import { calling, createLog, type Draft } from './helpers.ts'

const begin: Draft[] = [['turn/start'], ['user/message'], ['step/start']]
const end: Draft[] = [['step/end'], ['turn/end']]
const call = (callId: string): Draft => ['tool/call', { callId }]
const result = (callId: string): Draft => ['tool/result', { callId }]

describe('violationsOf', () => {
  test.each<[string, Draft[]]>([
    ['an empty log', []],
    ['a turn without a step', [['turn/start'], ['user/message'], ['turn/end']]],
    ['a turn of one step', [...begin, ['assistant/message'], ...end]],
    ['a step without a message', [...begin, ...end]],
    [
      'a turn of several steps, steered between them',
      [
        ...begin,
        ['assistant/message', calling('a')],
        call('a'),
        result('a'),
        ['step/end'],
        ['user/message'],
        ['context/message'],
        ['step/start', { step: 2 }],
        ['assistant/message'],
        ['step/end', { step: 2 }],
        ['turn/end'],
      ],
    ],
    [
      'parallel calls and calls one by one',
      [
        ...begin,
        ['assistant/message', calling('a', 'b', 'c')],
        call('a'),
        call('b'),
        result('a'),
        result('b'),
        call('c'),
        result('c'),
        ...end,
      ],
    ],
    [
      'the same call ids in two steps and two turns',
      [
        ...begin,
        ['assistant/message', calling('a')],
        call('a'),
        result('a'),
        ...end,
        ...begin,
        ['assistant/message', calling('a')],
        call('a'),
        result('a'),
        ['step/end'],
        ['step/start', { step: 2 }],
        ['assistant/message', calling('a')],
        call('a'),
        result('a'),
        ['step/end', { step: 2 }],
        ['turn/end'],
      ],
    ],
  ])('finds nothing in %s', (_, drafts) => {
    expect(violationsOf(createLog(drafts))).toEqual([])
  })

  test.each<[string, Draft[], string[]]>([
    [
      'a gap in the numbers',
      [['turn/start'], ['user/message', {}, 2], ['turn/end', {}, 3]],
      ['user/message at seq 2: seq is 2, expected 1'],
    ],
    [
      'a number that comes twice',
      [['turn/start'], ['user/message', {}, 0], ['turn/end', {}, 1]],
      ['user/message at seq 0: seq is 0, expected 1'],
    ],
    [
      'a turn inside a turn',
      [['turn/start'], ['turn/start'], ['turn/end']],
      ['turn/start at seq 1: a turn starts inside a turn'],
    ],
    [
      'a turn that ends twice',
      [['turn/start'], ['turn/end'], ['turn/end']],
      ['turn/end at seq 2: a turn ends that did not start'],
    ],
    ['a turn that never ends', [['turn/start']], ['the last turn never ended']],
    [
      'a turn that ends inside a step',
      [...begin, ['turn/end']],
      ['turn/end at seq 3: a turn ends inside a step'],
    ],
    [
      'input outside a turn',
      [['user/message'], ['context/message'], ['turn/start'], ['turn/end']],
      [
        'user/message at seq 0: a message outside a turn',
        'context/message at seq 1: a message outside a turn',
      ],
    ],
    [
      'input inside a step',
      [...begin, ['user/message'], ...end],
      ['user/message at seq 3: a user message inside a step'],
    ],
    [
      'a step outside a turn',
      [['step/start'], ['turn/start'], ['turn/end']],
      ['step/start at seq 0: a step outside a turn'],
    ],
    [
      'a step inside a step',
      [...begin, ['step/start', { step: 2 }], ...end],
      ['step/start at seq 3: a step starts inside a step'],
    ],
    [
      'a step that is left out',
      [['turn/start'], ['step/start', { step: 2 }], ['turn/end']],
      ['step/start at seq 1: step is 2, expected 1'],
    ],
    [
      'steps that do not begin at 1 again in the next turn',
      [...begin, ...end, ['turn/start'], ['step/start', { step: 2 }], ['turn/end']],
      ['step/start at seq 6: step is 2, expected 1'],
    ],
    [
      'a step that ends though none is open',
      [['turn/start'], ['step/end'], ['turn/end']],
      ['step/end at seq 1: a step ends that did not start'],
    ],
    [
      'a step that ends with the number of another',
      [...begin, ['step/end', { step: 2 }], ...end],
      ['step/end at seq 3: a step ends that did not start'],
    ],
    [
      'a message of the model outside a step',
      [['turn/start'], ['assistant/message'], ['turn/end']],
      ['assistant/message at seq 1: an assistant message outside a step'],
    ],
    [
      'a second message of the model in a step',
      [...begin, ['assistant/message'], ['assistant/message'], ...end],
      ['assistant/message at seq 4: a second assistant message in a step'],
    ],
    [
      'a call that no message announced',
      [...begin, ['assistant/message', calling('b')], call('a'), call('b'), result('b'), ...end],
      ['tool/call at seq 4: a call that no message announced'],
    ],
    [
      'a call that is logged twice',
      [...begin, ['assistant/message', calling('a')], call('a'), call('a'), result('a'), ...end],
      ['tool/call at seq 5: a call that no message announced'],
    ],
    [
      'a call of an earlier step',
      [
        ...begin,
        ['assistant/message', calling('a')],
        call('a'),
        result('a'),
        ['step/end'],
        ['step/start', { step: 2 }],
        call('a'),
        ['step/end', { step: 2 }],
        ['turn/end'],
      ],
      ['tool/call at seq 8: a call that no message announced'],
    ],
    [
      'calls without a result, logged or not',
      [...begin, ['assistant/message', calling('a', 'b')], call('a'), ...end],
      ['step/end at seq 5: calls without a result: b, a'],
    ],
    [
      'a result without a call',
      [...begin, ['assistant/message'], result('a'), ...end],
      ['tool/result at seq 4: a result without an open call'],
    ],
    [
      'a second result of one call',
      [...begin, ['assistant/message', calling('a')], call('a'), result('a'), result('a'), ...end],
      ['tool/result at seq 6: a result without an open call'],
    ],
    [
      'results that are not in call order',
      [
        ...begin,
        ['assistant/message', calling('a', 'b')],
        call('a'),
        call('b'),
        result('b'),
        result('a'),
        ...end,
      ],
      ['tool/result at seq 6: a result out of order, expected one for "a"'],
    ],
  ])('finds %s', (_, drafts, violations) => {
    expect(violationsOf(createLog(drafts))).toEqual(violations)
  })
})

describe('LogChecker', () => {
  test('starts where it is told, for a log that begins with a seed', () => {
    const checker = new LogChecker(6)

    const problems = createLog([['turn/start'], ['turn/end']], 6).map((item) => checker.check(item))

    expect(problems).toEqual([undefined, undefined])
  })

  test('reports one gap once, and goes on from there', () => {
    const checker = new LogChecker()
    const log = createLog([['turn/start'], ['user/message', {}, 7], ['turn/end', {}, 8]])

    const problems = log.map((item) => checker.check(item))

    expect(problems).toEqual([undefined, 'seq is 7, expected 1', undefined])
  })

  test('looks at an event of a long log no more often than at one of a short log', () => {
    const reads: number[] = []
    const checker = new LogChecker()
    const turn: Draft[] = [
      ...begin,
      ['assistant/message', calling('a', 'b')],
      call('a'),
      result('a'),
      call('b'),
      result('b'),
      ...end,
    ]
    const log = createLog(Array.from({ length: 200 }, () => turn).flat())

    for (const event of log) {
      let count = 0
      const counted = new Proxy(event, {
        get: (target, key, receiver): unknown => {
          count += 1
          return Reflect.get(target, key, receiver)
        },
      })
      expect(checker.check(counted)).toBeUndefined()
      reads.push(count)
    }

    expect(reads).toHaveLength(2000)
    expect(reads.slice(-10)).toEqual(reads.slice(0, 10))
  })
})
