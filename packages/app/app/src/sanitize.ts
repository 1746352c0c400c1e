/** Text on its way to a terminal. */
import { stripVTControlCharacters } from 'node:util'

/** Without what could drive a terminal: escape sequences and control characters but tab and newline. */
export function sanitize(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return stripVTControlCharacters(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}
