#!/usr/bin/env node
/** Starts the command. What it needs is imported later: hot reload never touches what this file imports. */
import { Console } from 'node:console'
import { enableCompileCache } from 'node:module'

/** What may still hold the event loop when all is disposed gets this long, in ms. */
const lingerMs = 500

enableCompileCache()
// stdout belongs to the front end, whatever a plugin prints.
globalThis.console = new Console(process.stderr, process.stderr)
const { runCommand } = await import('./command.ts')
const { Ending } = await import('./ending.ts')
// Never disposed: what plugins left running may fail until the process is gone.
const ending = new Ending(process)
const code = await runCommand(process.argv.slice(2), process, ending)
ending.settle(code)
process.exitCode = code
setTimeout(() => process.exit(), lingerMs).unref()
