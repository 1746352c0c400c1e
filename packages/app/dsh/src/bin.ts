#!/usr/bin/env node
/** Starts the command. What it needs is imported later: hot reload never touches what this file imports. */
import { enableCompileCache } from 'node:module'

/** What may still hold the event loop when all is disposed gets this long, in ms. */
const lingerMs = 500

enableCompileCache()
const { Printing } = await import('./console.ts')
// stdout belongs to the front end, whatever a plugin prints.
const printing = new Printing(process.stderr)
globalThis.console = printing.console
const { runCommand } = await import('./command.ts')
const { Ending } = await import('./ending.ts')
// Never disposed: what plugins left running may fail until the process is gone.
const ending = new Ending(process)
const code = await runCommand(process.argv.slice(2), process, { ending, printing })
ending.settle(code)
process.exitCode = code
setTimeout(() => process.exit(), lingerMs).unref()
