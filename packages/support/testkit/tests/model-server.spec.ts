import { describe, expect, test } from 'vitest'
import { gate, startModelServer, waitFor } from '../src/index.ts'

const chat = { model: 'any', messages: [{ role: 'user', content: 'hello' }], stream: true }

function post(url: string, body: object = chat, signal?: AbortSignal): Promise<Response> {
  return fetch(url, { method: 'POST', body: JSON.stringify(body), ...(signal && { signal }) })
}

describe('startModelServer', () => {
  test.each([
    ['chat/completions', chat, 'delta":{"content":"hi"}'],
    ['responses', { model: 'any', input: [{ role: 'user', content: 'hello' }] }, '"delta":"hi"'],
    ['messages', { ...chat, max_tokens: 9 }, '"text_delta","text":"hi"'],
    [
      'models/any:streamGenerateContent',
      { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] },
      '{"text":"hi"}',
    ],
  ])('answers at /v1/%s in the form of its API', async (path, body, expected) => {
    const server = await startModelServer(({ messages, index }) =>
      messages[0]?.text === 'hello' && index === 0 ? 'hi' : 'what?',
    )

    const response = await post(`${server.baseURL}/${path}`, body)

    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(await response.text()).toContain(expected)
    expect(server.requests).toMatchObject([
      { index: 0, method: 'POST', path: `/v1/${path}`, model: 'any' },
    ])
  })

  test('says at /v1/responses what strict clients ask of items and tokens', async () => {
    const server = await startModelServer(['hi'])

    const response = await post(`${server.baseURL}/responses`, { model: 'any', input: [] })

    const told = await response.text()
    expect(told.match(/"role":"assistant","content":\[/g)).toHaveLength(2)
    expect(told).toContain('"total_tokens":15')
  })

  test.each(['content', 'output', 'error'])(
    'reads what a tool said from the %s of a function response',
    async (key) => {
      const server = await startModelServer(['hi'])
      const part = { functionResponse: { name: 'look', response: { [key]: 'seen' } } }

      const response = await post(`${server.baseURL}/models/any:streamGenerateContent`, {
        contents: [{ role: 'user', parts: [part] }],
      })

      await response.text()
      expect(server.requests).toMatchObject([{ messages: [{ role: 'tool', text: 'seen' }] }])
    },
  )

  test('counts requests, and refuses those past the end of its list', async () => {
    const server = await startModelServer(['one'])
    const url = `${server.baseURL}/chat/completions`

    const first = await post(url)
    const second = await post(url)

    expect([first.status, second.status]).toEqual([200, 400])
    expect(await second.text()).toContain('no reply is scripted for request 1')
    await first.text()
  })

  test('refuses a request on which the answer throws, with its words', async () => {
    const server = await startModelServer(() => {
      throw new Error('I expected a tool result')
    })

    const response = await post(`${server.baseURL}/messages`)

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { message: 'I expected a tool result' } })
  })

  test('serves nothing else', async () => {
    const server = await startModelServer(['one'])

    const got = await fetch(`${server.baseURL}/models`)
    const posted = await post(`${server.url}/elsewhere`)

    expect([got.status, posted.status]).toEqual([404, 404])
    expect(server.requests).toEqual([])
  })

  test('cuts a connection on which no JSON came', async () => {
    const server = await startModelServer(['one'])

    const response = fetch(`${server.baseURL}/messages`, { method: 'POST', body: 'hello' })

    await expect(response).rejects.toThrow('fetch failed')
  })

  test('holds a reply after its text until it is told', async () => {
    const hold = gate()
    const server = await startModelServer([{ text: 'half', until: hold.opened }])
    const response = await post(`${server.baseURL}/chat/completions`)
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    const head = (await reader?.read())?.value ?? ''

    hold.open()
    let rest = ''
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      rest += part.value

    expect(head + rest).toMatch(/half.*"finish_reason":"stop".*\[DONE\]/s)
    expect(head).not.toContain('[DONE]')
  })

  test('finishes a stalled reply when it is released', async () => {
    const server = await startModelServer([{ text: 'half', fault: { kind: 'stall' } }])
    const response = await post(`${server.baseURL}/chat/completions`)

    server.release()

    expect(await response.text()).toContain('[DONE]')
    expect(server.requests).toMatchObject([{ isAbandoned: false }])
  })

  test('sees that a client went away', async () => {
    const server = await startModelServer([{ text: 'half', fault: { kind: 'stall' } }])
    const controller = new AbortController()
    const response = await post(`${server.baseURL}/chat/completions`, chat, controller.signal)

    controller.abort()

    await waitFor('the server to see it', () => server.openConnections() === 0)
    expect(server.requests).toMatchObject([{ isAbandoned: true }])
    await expect(response.text()).rejects.toThrow('aborted')
  })

  test('sends a status with its headers and its body', async () => {
    const fault = { status: 429, headers: { 'retry-after': '7' }, body: 'slow down' }
    const server = await startModelServer([{ fault }])

    const response = await post(`${server.baseURL}/responses`)

    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7'])
    expect(await response.text()).toBe('slow down')
  })

  test('closes by hand, twice, with a reply under way', async () => {
    const server = await startModelServer([{ fault: { kind: 'stall' } }], { isManual: true })
    const response = await post(`${server.baseURL}/chat/completions`)

    await Promise.all([server.close(), server.close()])

    await expect(response.text()).rejects.toThrow('terminated')
    await expect(post(server.url)).rejects.toThrow('fetch failed')
  })
})
