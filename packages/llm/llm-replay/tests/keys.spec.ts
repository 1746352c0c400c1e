import type { SessionHeader, SessionId } from '@deepseek-ai/dsh-session'
import { Session } from '@deepseek-ai/dsh-session'
import { describe, expect, test } from 'vitest'
import { isFromElsewhere, SessionKeys, topOf } from '../src/keys.ts'

function createSession(id: string, parent?: string, callId?: string): Session {
  const header: SessionHeader = {
    id: id as SessionId,
    createdAt: 0,
    cwd: '/',
    delegationDepth: 0,
    ...(parent !== undefined && { parentSession: parent as SessionId }),
    origin: { provider: 'spawn', ...(callId !== undefined && { callId }) },
  }
  return new Session(header, () => {})
}

describe('SessionKeys', () => {
  test('names children by their parent and the call that asked for them', () => {
    const keys = new SessionKeys()

    const names = [
      createSession('a'),
      createSession('b', 'a', 'call-1'),
      createSession('c', 'b', 'call-1'),
      createSession('d', 'a', 'call-2'),
    ].map((session) => keys.name(session))

    expect(names).toEqual(['root', 'root/call-1', 'root/call-1/call-1', 'root/call-2'])
    expect(keys.get('c' as SessionId)).toBe('root/call-1/call-1')
    expect(keys.get('z' as SessionId)).toBeUndefined()
  })

  test('numbers what would have the same name, in the order of creation', () => {
    const keys = new SessionKeys()

    const names = [
      createSession('a'),
      createSession('b'),
      createSession('c', 'a', 'call'),
      createSession('d', 'a', 'call'),
      createSession('e', 'a', 'call'),
      createSession('f', 'b', 'call'),
      createSession('g', 'a'),
      createSession('h', 'a'),
    ].map((session) => keys.name(session))

    expect(names).toEqual([
      'root',
      'root#2',
      'root/call',
      'root/call#2',
      'root/call#3',
      'root#2/call',
      'root/child',
      'root/child#2',
    ])
  })

  test('names a session whose parent is in another process by the call, and what is below it', () => {
    const keys = new SessionKeys()

    const names = [
      createSession('a', 'elsewhere', 'call'),
      createSession('b', 'elsewhere', 'call'),
      createSession('c', 'a', 'deeper'),
      createSession('d', 'elsewhere'),
    ].map((session) => keys.name(session))

    expect(names).toEqual(['parent/call', 'parent/call#2', 'parent/call/deeper', 'root'])
  })

  test('never gives one name to two, whatever models call their calls', () => {
    const keys = new SessionKeys()
    keys.name(createSession('a'))

    const names = ['x', 'x/y', 'x#2', 'x%232', 'x%2Fy', 'x'].map((callId, index) =>
      keys.name(createSession(`s${index}`, 'a', callId)),
    )
    const grandchild = keys.name(createSession('t', 's0', 'y'))

    expect(new Set([...names, grandchild]).size).toBe(7)
    expect(names).toContain('root/x#2')
    expect(names).toContain('root/x%2Fy')
  })
})

describe('topOf', () => {
  test.each([
    ['root', 'root', false],
    ['root#2/call/child', 'root#2', false],
    ['parent/call#2', 'parent/call#2', true],
    ['parent/call/child', 'parent/call', false],
  ])('of %s is %s', (key, top, isElsewhere) => {
    expect(topOf(key)).toBe(top)
    expect(isFromElsewhere(key)).toBe(isElsewhere)
  })
})
