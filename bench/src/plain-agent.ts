/** An agent that speaks the Agent Client Protocol and answers at once. */
import { createInterface } from 'node:readline'

interface Request {
  readonly id: number
  readonly method: string
}

const results: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: 1, agentCapabilities: {} },
  'session/new': { sessionId: 's' },
  'session/prompt': { stopReason: 'end_turn' },
}

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line) as Request
  if (method === 'session/prompt') {
    const content = { type: 'text', text: 'done' }
    const update = { sessionUpdate: 'agent_message_chunk', content }
    send({ method: 'session/update', params: { sessionId: 's', update } })
  }
  const result = results[method]
  if (result !== undefined) send({ id, result })
})
