import { describe, expect, test } from 'vitest'
import { Diagnostic } from '../src/diagnostic.ts'
import { delegateOnce, fixture } from './helpers.ts'

const secret = 's3cret-"quoted"-value'

describe('Diagnostic', () => {
  test('is the reason alone when the agent has said nothing', () => {
    expect(new Diagnostic({}).about('why')).toBe('why')
  })

  test('adds the ends of both outputs', () => {
    const diagnostic = new Diagnostic({})
    diagnostic.stderr.push(Buffer.from(`${'x'.repeat(2000)} the end\n`))
    diagnostic.noise.push(Buffer.from('a banner\n'))

    const text = diagnostic.about('why')

    expect(text).toMatch(/^why\nstderr \(its end\): x{1015} the end\nstdout: a banner$/)
  })

  test('shows nothing that drives a terminal', () => {
    const diagnostic = new Diagnostic({})
    diagnostic.stderr.push(Buffer.from('\u001B[31mbad\u001B[0m luck'))

    expect(diagnostic.about('why')).toBe('why\nstderr: bad luck')
  })

  test('shortens a reason that is long', () => {
    const text = new Diagnostic({}).about('x'.repeat(5000))

    expect(text).toBe(`${'x'.repeat(1500)}…`)
  })

  test('gives names instead of values, the longest value first, also when quoted', () => {
    const diagnostic = new Diagnostic({
      INNER: 'inner value',
      OUTER: 'the inner value',
      KEY: secret,
    })

    const text = diagnostic.about(`the inner value, inner value, ${JSON.stringify({ secret })}`)

    expect(text).toBe('[OUTER], [INNER], {"secret":"[KEY]"}')
  })

  test('leaves values alone that are too short to be secrets', () => {
    expect(new Diagnostic({ DEBUG: '1', EMPTY: '', LEVEL: 'debug' }).about('1 debug')).toBe(
      '1 debug',
    )
  })

  test('shows no part of a value, wherever the output is cut', () => {
    for (let length = 900; length < 1100; length += 1) {
      const diagnostic = new Diagnostic({ KEY: secret })
      diagnostic.stderr.push(Buffer.from(`begin ${secret}${'.'.repeat(length)}`))

      const text = diagnostic.about('why')

      expect(text).not.toMatch(/s3c|cre|quot|val/)
    }
  })
})

describe('the diagnostic of a run', () => {
  test.each([
    ['an error', 'data', /^the agent failed at session\/prompt: boom \(\[ \[/],
    ['a stop reason', 'stopReason', /unknown stop reason \[ \[/],
  ])('tells of %s whose value is nested too deep for JSON', async (_, where, expected) => {
    expect((await delegateOnce(fixture('nests', where))).diagnostic).toMatch(expected)
  })

  test('holds no value of the environment that the agent was given', async () => {
    const config = { env: { SECRET: secret } }

    const error = await delegateOnce({ ...fixture('leaks'), ...config })
    const exit = await delegateOnce({ ...fixture('leaks', 'exit', '10'), ...config })

    expect(error.diagnostic).toBe(
      'the agent failed at session/prompt: [SECRET] ({"env":{"secret":"[SECRET]"}})',
    )
    expect(exit.diagnostic).toMatch(
      /exited with code 1 at session\/prompt\nstderr: \[SECRET\] \.{10} the end\nstdout: key \[SECRET\]$/,
    )
  })
})
