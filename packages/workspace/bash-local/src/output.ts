/** Keeps the output of a command in bounded memory: whole, or its head, its tail and a file. */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { messageOf } from '@deepseek-ai/dsh-llm'
import { ByteTail, decode, decodeHead } from '@deepseek-ai/dsh-process'

/** How many files there are at most; the oldest make room. */
const maxFiles = 32

export interface KeptOutput {
  readonly output: string
  readonly isTruncated: boolean
  readonly outputPath?: string
}

/** The output of one command. */
export class Output {
  private readonly maxBytes: number
  private readonly files: OutputFiles
  private total = 0
  /** All of it while it fits, then the head. */
  private head: Buffer[] = []
  private rest: { readonly tail: ByteTail; readonly file: OutputFile } | undefined
  private kept: KeptOutput | undefined

  constructor(maxBytes: number, files: OutputFiles) {
    this.maxBytes = maxBytes
    this.files = files
  }

  push(chunk: Buffer): void {
    if (this.kept !== undefined) return
    this.total += chunk.length
    if (this.rest !== undefined) {
      this.rest.tail.push(chunk)
      this.rest.file.write(chunk)
      return
    }
    this.head.push(chunk)
    if (this.total > this.maxBytes) this.overflow(Buffer.concat(this.head))
  }

  /** Takes no more, and closes the file. */
  end(): KeptOutput {
    this.kept ??= this.keep()
    return this.kept
  }

  private overflow(bytes: Buffer): void {
    const half = Math.floor(this.maxBytes / 2)
    const tail = new ByteTail(this.maxBytes - half)
    tail.push(bytes.subarray(half))
    const file = this.files.create()
    file.write(bytes)
    this.head = [bytes.subarray(0, half)]
    this.rest = { tail, file }
  }

  private keep(): KeptOutput {
    const head = Buffer.concat(this.head)
    if (this.rest === undefined) return { output: decode(head), isTruncated: false }
    const { tail, file } = this.rest
    file.close()
    const note = `[${this.total - this.maxBytes} bytes left out; ${file.note(this.total)}]`
    return {
      output: `${decodeHead(head)}\n${note}\n${tail.text()}`,
      isTruncated: true,
      ...(file.problem === undefined && { outputPath: file.path }),
    }
  }
}

/** The files of an executor; each lies in a folder of its own that only this user may read. */
export class OutputFiles {
  private readonly maxBytes: number
  private files: OutputFile[] = []

  /** `maxBytes` holds for each file. */
  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  create(): OutputFile {
    const file = new OutputFile(this.maxBytes)
    this.files.push(file)
    if (this.files.length > maxFiles) this.files.shift()?.delete()
    return file
  }

  deleteAll(): void {
    for (const file of this.files) file.delete()
    this.files = []
  }
}

/** A file that takes the start of an output; a disk that is full only loses the file. */
class OutputFile {
  path = ''
  problem: string | undefined
  private readonly maxBytes: number
  private written = 0
  private handle: number | undefined

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
    this.attempt(() => {
      this.path = join(mkdtempSync(join(tmpdir(), 'dsh-bash-')), 'output.txt')
      this.handle = openSync(this.path, 'wx', 0o600)
    })
  }

  write(bytes: Buffer): void {
    const { handle } = this
    if (handle === undefined || this.problem !== undefined) return
    const part = bytes.subarray(0, this.maxBytes - this.written)
    this.attempt(() => {
      for (let at = 0; at < part.length;) at += writeSync(handle, part, at)
    })
    this.written += part.length
  }

  close(): void {
    const { handle } = this
    this.handle = undefined
    if (handle !== undefined) this.attempt(() => closeSync(handle))
  }

  delete(): void {
    this.close()
    if (this.path !== '')
      this.attempt(() => rmSync(dirname(this.path), { recursive: true, force: true }))
  }

  /** What is to be found where. */
  note(total: number): string {
    if (this.problem !== undefined) return `they could not be stored: ${this.problem}`
    if (total > this.written) return `the first ${this.written} bytes are in "${this.path}"`
    return `the whole output is in "${this.path}"`
  }

  private attempt(action: () => void): void {
    try {
      action()
    } catch (error) {
      this.problem = messageOf(error)
    }
  }
}
