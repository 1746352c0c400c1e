/** Waits, but not for ever. */

/** Waits for a promise, at most `ms`. @returns whether it settled in time; rejects when it does. */
export async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(resolve, ms, false)
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
