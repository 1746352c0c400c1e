import { bootYml } from '@deepseek-ai/dsh-testkit'
import { createMockProvider } from '@deepseek-ai/dsh-subagent-mock'
import { describe, expect, test } from 'vitest'
import * as plugin from '../src/index.ts'
import { boot, call, core, entry, fiberOf } from './helpers.ts'

const able = { depthLimit: true, toolFilter: true }

describe('the plugin', () => {
  test('keeps its exports through the unwrapping of the Loader', async () => {
    const ctx = await bootYml(core)

    const unwrapped: unknown = ctx.loader.unwrapExports(plugin)

    expect(unwrapped).toBe(plugin)
    expect(Object.keys(plugin).toSorted()).toEqual(['Config', 'apply', 'inject', 'name'])
  })
})

describe('the request', () => {
  test('holds nothing that the config omits, but a limit of silence', async () => {
    const booted = await boot()
    const { signal } = new AbortController()

    await call(booted, { description: 'look', prompt: 'go' }, { signal })

    expect(booted.mock.requests).toEqual([
      {
        prompt: 'go',
        label: 'look',
        parent: booted.parent,
        callId: 'call-1',
        signal,
        idleTimeoutMs: 1_800_000,
      },
    ])
    expect(Object.keys(booted.mock.requests[0] ?? {}).toSorted()).toEqual([
      'callId',
      'idleTimeoutMs',
      'label',
      'parent',
      'prompt',
      'signal',
    ])
  })

  test('takes an empty yml value for an omitted one', async () => {
    const nothing = { agentOptions: null, maxDepth: null, timeoutMs: null, idleTimeoutMs: null }
    const booted = await boot(nothing)

    await call(booted)

    expect(booted.mock.requests[0]?.idleTimeoutMs).toBe(1_800_000)
    expect(Object.keys(booted.mock.requests[0] ?? {}).toSorted()).toEqual([
      'callId',
      'idleTimeoutMs',
      'label',
      'parent',
      'prompt',
      'signal',
    ])
  })

  test('holds no limit of silence when that is 0', async () => {
    const booted = await boot({ idleTimeoutMs: 0 })

    await call(booted)

    expect(booted.mock.requests[0]).not.toHaveProperty('idleTimeoutMs')
  })

  test('holds what the config says', async () => {
    const config = {
      agentOptions: { model: 'scripted', maxSteps: 5 },
      maxDepth: 1,
      toolFilter: { allow: ['read'], deny: [] },
      timeoutMs: 1000,
      idleTimeoutMs: 500,
    }
    const booted = await boot(config, { capabilities: able })

    await call(booted)

    expect(booted.mock.requests[0]).toMatchObject(config)
  })

  test.each([
    [
      'agentOptions',
      { agentOptions: { model: 'scripted', maxSteps: null } },
      { model: 'scripted' },
    ],
    ['toolFilter', { toolFilter: { deny: ['bash'] } }, { deny: ['bash'] }],
    ['toolFilter', { toolFilter: { allow: [] } }, { allow: [] }],
  ] as const)('holds of %s exactly what is given: %o', async (key, config, expected) => {
    const booted = await boot(config, { capabilities: able })

    await call(booted)

    expect(booted.mock.requests[0]?.[key]).toStrictEqual(expected)
  })

  test.each([
    ['is 3 when the provider can limit it', {}, able, 3],
    ['is absent when the provider cannot', {}, {}, undefined],
    ['is the one of the config', { maxDepth: 7 }, able, 7],
  ])('has a maxDepth that %s', async (_, config, capabilities, expected) => {
    const booted = await boot(config, { capabilities })

    await call(booted)

    expect(booted.mock.requests[0]?.maxDepth).toBe(expected)
  })
})

describe('Config', () => {
  const numbers = ['maxDepth', 'timeoutMs', 'idleTimeoutMs', 'maxOutputBytes']
  const wrong = ["'3'", '1.5', '-1', '.nan', '.inf', '1e300', 'true', '[3]']
  const cases = numbers.flatMap((key) =>
    wrong.map((value): [string, string] => [key, `${key}: ${value}`]),
  )

  test.each<[string, string]>([
    ...cases,
    ['timeoutMs', 'timeoutMs: 0'],
    ['idleTimeoutMs', 'idleTimeoutMs: 2147483648'],
    ['maxOutputBytes', 'maxOutputBytes: 1023'],
    ['toolName', "toolName: 'my tool'"],
    ['toolName', "toolName: ''"],
    ['provider', "provider: ''"],
    ['provider', 'provider: null'],
    ['agentOptions.maxSteps', 'agentOptions: { maxSteps: 0 }'],
    ['agentOptions.maxOutputTokens', 'agentOptions: { maxOutputTokens: 1.5 }'],
    ['agentOptions', 'agentOptions: fast'],
    ['toolFilter', 'toolFilter: {}'],
    ['toolFilter has no value', 'toolFilter: null'],
    ['toolFilter.allow has no value', 'toolFilter: { allow: null, deny: [bash] }'],
    ['toolFilter.deny has no value', 'toolFilter: { allow: [read], deny: null }'],
    ['toolFilter', 'toolFilter: { deny: [] }'],
    ['"denny"', 'toolFilter: { allow: [read], denny: [bash] }'],
    ['toolFilter.allow', 'toolFilter: { allow: read }'],
    ['toolFilter.deny[0]', 'toolFilter: { deny: [null] }'],
  ])('refuses at load, naming %s: %s', async (key, line) => {
    const provider = line.startsWith('provider') ? '' : 'provider: mock, '
    const named = key.replace(/[[\].]/g, '\\$&')
    const yml =
      core + entry('subagent-mock', able) + entry('tool-subagent', `{ ${provider}${line} }`)

    const ctx = await bootYml(yml, { expectErrors: new RegExp(named) })

    await expect(fiberOf(ctx, 'tool-subagent').await()).rejects.toThrow(new RegExp(named))
    expect(ctx.tools.table.names()).toEqual([])
    expect(ctx.subagents.list()).toEqual(['mock'])
  })

  test('takes a maxDepth of 0, and then no child starts', async () => {
    const booted = await boot({ maxDepth: 0 }, { capabilities: able })

    const result = await call(booted)

    expect(result).toMatchObject({ isError: true, code: 'DEPTH_EXCEEDED' })
    expect(booted.mock.requests).toEqual([])
  })

  describe.each([
    ['maxDepth', { maxDepth: 2 }, { toolFilter: true }],
    ['toolFilter', { toolFilter: { deny: ['bash'] } }, { depthLimit: true }],
  ])('with a %s that the provider cannot honour', (key, config, capabilities) => {
    const expectErrors = new RegExp(`does not support "${key}"`)
    const tool = entry('tool-subagent', { provider: 'mock', ...config })

    test('fails the load', async () => {
      const ctx = await bootYml(core + entry('subagent-mock', capabilities) + tool, {
        expectErrors,
      })

      await expect(fiberOf(ctx, 'tool-subagent').await()).rejects.toThrow(expectErrors)
      expect(ctx.tools.table.names()).toEqual([])
    })

    test('fails the load when the provider comes later, and the provider stays', async () => {
      const ctx = await bootYml(core + tool, { expectErrors })

      ctx.subagents.registerProvider(createMockProvider({ capabilities }))

      await expect(fiberOf(ctx, 'tool-subagent').await()).rejects.toThrow(expectErrors)
      expect(ctx.tools.table.names()).toEqual([])
      expect(ctx.subagents.list()).toEqual(['mock'])
    })
  })
})
