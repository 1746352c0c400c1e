/** Makes one delegation with a fresh process, and tells when it is done: `start-one.ts NAME`. */
import type { Adapter } from './peer.ts'

const [name = ''] = process.argv.slice(2)
const { adapter } = (await import(`./adapters/${name}.ts`)) as { readonly adapter: Adapter }
const peer = await adapter.create({ deltas: 1, onDelta: () => {} })
process.stdout.write(await peer.delegate(1))
process.exit()
