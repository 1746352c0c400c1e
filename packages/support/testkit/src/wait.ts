/** Waiting for the world to change, with a deadline. */
import { setTimeout as delay } from 'node:timers/promises'

/** Polls until the condition holds. @throws when it does not within `deadlineMs`, naming `what`. */
export async function waitFor(
  what: string,
  condition: () => boolean | Promise<boolean>,
  deadlineMs = 10_000,
): Promise<void> {
  const end = performance.now() + deadlineMs
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${deadlineMs} ms: ${what}`)
    await delay(5)
  }
}

/** A promise that a test settles by hand, to hold something at a known point. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}
