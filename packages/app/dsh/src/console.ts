/** Where `console` writes: stdout belongs to the front end, and what it draws is not to be spoiled. */
import { Console } from 'node:console'
import { Writable } from 'node:stream'

/** A `console` on stderr, unless somebody shows what is printed. */
export class Printing {
  readonly console: Console
  /** Shows what was printed; gives whether it did. */
  onPrint: (text: string) => boolean = () => false

  constructor(stderr: NodeJS.WritableStream) {
    const stream = new Writable({
      decodeStrings: false,
      write: (chunk: string | Buffer, _encoding, done) => {
        const text = String(chunk)
        if (!this.onPrint(text.replace(/\n$/, ''))) stderr.write(text)
        done()
      },
    })
    this.console = new Console(stream, stream)
  }
}
