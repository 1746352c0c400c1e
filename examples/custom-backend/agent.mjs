#!/usr/bin/env node
// Stands for an agent of yours: gets its prompt on stdin, and says its answer in lines of JSON.
import { readdir } from 'node:fs/promises'
import { text } from 'node:stream/consumers'

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

const prompt = await text(process.stdin)
say({ text: 'I look around.' })
say({ tool: 'list' })
const files = await readdir('.')
say({ text: `You asked: ${prompt}. There are ${files.length} files here.` })
