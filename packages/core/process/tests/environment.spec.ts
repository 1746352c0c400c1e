import { describe, expect, test } from 'vitest'
import { cleanEnvironment } from '../src/index.ts'

describe('cleanEnvironment', () => {
  test.each([
    'OPENAI_API_KEY',
    'PGPASSWORD',
    'client_secret',
    'GITHUB_TOKEN',
    'AWS_CREDENTIALS_FILE',
    'NODE_OPTIONS',
    'LD_PRELOAD',
    'LD_AUDIT',
    'DYLD_INSERT_LIBRARIES',
    'BASH_ENV',
    'SSH_AUTH_SOCK',
    'SSH_AGENT_PID',
    'GPG_AGENT_INFO',
    'CLAUDECODE',
    'CLAUDE_CODE_ENTRYPOINT',
  ])('leaves out %s', (name) => {
    expect(cleanEnvironment({}, { [name]: 'x', HOME: '/h' })).toEqual({ HOME: '/h' })
  })

  test.each([
    'HOME',
    'USER',
    'LOGNAME',
    'PATH',
    'SHELL',
    'LANG',
    'LC_ALL',
    'LC_CTYPE',
    'TERM',
    'TMPDIR',
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'NO_PROXY',
    'ALL_PROXY',
    'http_proxy',
    'https_proxy',
    'no_proxy',
    'all_proxy',
    'LD_LIBRARY_PATH',
    'CLAUDE_CODE_USE_BEDROCK',
    'EDITOR',
    'DSH_PROCESS_MARKS',
  ])('keeps %s', (name) => {
    expect(cleanEnvironment({}, { [name]: 'x' })).toEqual({ [name]: 'x' })
  })

  test('lets explicit variables win, secret or not', () => {
    const ambient = { API_KEY: 'ambient', LANG: 'C', GONE: undefined }

    const environment = cleanEnvironment(
      { API_KEY: 'given', LANG: 'de', NODE_OPTIONS: '' },
      ambient,
    )

    expect(environment).toEqual({ API_KEY: 'given', LANG: 'de', NODE_OPTIONS: '' })
  })

  test('starts from the variables of this process', () => {
    expect(cleanEnvironment()).toMatchObject({ PATH: process.env['PATH'] })
  })
})
