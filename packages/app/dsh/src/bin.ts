#!/usr/bin/env node
/** Starts the command. What it needs is imported later: hot reload never touches what this file imports. */
import { Console } from 'node:console'
import { enableCompileCache } from 'node:module'

/** What may still hold the event loop when all is disposed gets this long, in ms. */
const lingerMs = 500

enableCompileCache()
// stdout belongs to the front end, whatever a plugin prints.
globalThis.console = new Console(process.stderr, process.stderr)
const { main } = await import('./command.ts')
process.exitCode = await main(process.argv.slice(2))
setTimeout(() => process.exit(), lingerMs).unref()
