import { describe, expect, test } from 'vitest'
import { answerPermission, type PermissionPolicy } from '../src/permission.ts'
import { createBench, delegateOnce, fixture, textOf } from './helpers.ts'

function optionsOf(...kinds: readonly unknown[]): { optionId: string; kind: unknown }[] {
  // The ids say the opposite, as they may.
  return kinds.map((kind) => ({ optionId: `allow ${String(kind)}`, name: 'allow', kind }))
}

const all = ['allow_always', 'allow_once', 'reject_always', 'reject_once']

describe('answerPermission', () => {
  test.each<[PermissionPolicy, readonly unknown[], string | undefined]>([
    ['reject', all, 'reject_once'],
    ['reject', ['allow_once', 'reject_always'], 'reject_always'],
    ['reject', ['allow_once', 'allow_always'], undefined],
    ['reject', ['deny', 'allow_once'], undefined],
    ['reject', [], undefined],
    ['allow', all, 'allow_once'],
    ['allow', ['reject_once', 'allow_always'], 'allow_always'],
    ['allow', ['reject_once', 'reject_always'], undefined],
    ['allow', ['allow_forever', 'ALLOW_ONCE', undefined, 7], undefined],
    ['allow', [], undefined],
  ])('by policy %s chooses among %j', (policy, kinds, chosen) => {
    const { outcome } = answerPermission(policy, { options: optionsOf(...kinds) })

    expect(outcome).toEqual(
      chosen === undefined
        ? { outcome: 'cancelled' }
        : { outcome: 'selected', optionId: `allow ${chosen}` },
    )
  })
})

describe('an agent that asks for permission', () => {
  test.each<[PermissionPolicy | undefined, string]>([
    [undefined, 'allow reject_once'],
    ['reject', 'allow reject_once'],
    ['allow', 'allow allow_once'],
  ])('gets the answer of policy %s', async (permission, optionId) => {
    const params = { sessionId: 's', options: optionsOf(...all, 'unknown_kind') }
    const request = ['session/request_permission', params]

    const result = await delegateOnce(
      { ...fixture('asks'), ...(permission !== undefined && { permission }) },
      JSON.stringify([request, request]),
    )

    const answer = { outcome: { outcome: 'selected', optionId } }
    expect(textOf(result)).toBe(JSON.stringify([answer, answer]))
  })

  test.each<[PermissionPolicy, string[], string | undefined]>([
    ['reject', all, '2 requests for permission refused, by the policy "reject"'],
    ['allow', ['reject_once'], '2 requests for permission refused, by the policy "allow"'],
    ['allow', all, undefined],
  ])('by policy %s with %j leaves the remark %j', async (permission, kinds, diagnostic) => {
    const params = { sessionId: 's', options: optionsOf(...kinds) }
    const request = ['session/request_permission', params]

    const result = await delegateOnce(
      { ...fixture('asks'), permission },
      JSON.stringify([request, request]),
    )

    expect(result.stopReason).toBe('completed')
    expect(result.diagnostic).toBe(diagnostic)
  })

  test('without options that make sense gets an error', async () => {
    const result = await delegateOnce(
      fixture('asks'),
      JSON.stringify([['session/request_permission', { sessionId: 's', options: 'none' }]]),
    )

    expect(textOf(result)).toBe('[-32602]')
  })

  test('can be one that is built on the SDK', async () => {
    const { delegate, updates } = await createBench(fixture('on-the-sdk'))

    const result = await delegate('do it')

    expect(result).toEqual({
      output: [
        {
          type: 'text',
          text: '[{"text":"do it","type":"text"}] {"outcome":"selected","optionId":"2"}',
        },
      ],
      stopReason: 'completed',
      diagnostic: '1 request for permission refused, by the policy "reject"',
    })
    expect(updates[0]).toEqual({ kind: 'reasoning', text: 'let me see' })
  })
})
