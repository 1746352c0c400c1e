/** A program that runs one child, notes that it talks, and waits to be killed: `host.ts FOLDER PROVIDER PROMPT`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Context } from '@deepseek-ai/cordis'
import Include from '@deepseek-ai/cordis-plugin-include'
import Loader from '@deepseek-ai/cordis-plugin-loader'
import type { SubagentRun } from '@deepseek-ai/dsh-subagent'
import { scriptedModel } from '@deepseek-ai/dsh-testkit'

const [folder = '', provider = '', prompt = ''] = process.argv.slice(2)
const ctx = new Context()
ctx.baseUrl = `${pathToFileURL(folder).href}/`
await ctx.plugin(Loader)
ctx.loader.builtins['include'] = Include
await ctx.loader.create({ name: 'cordis:include', config: { path: './cordis.json' } })
await ctx.loader.await()
ctx.llm.registerAdapter(scriptedModel([]))
ctx.on('subagent/update', () => writeFileSync(join(folder, 'talking'), ''))
const { agent: parent } = ctx.agents.create({ cwd: folder })
const run: SubagentRun = ctx.subagents.start(provider, { prompt, parent })
setInterval(() => run, 1000)
