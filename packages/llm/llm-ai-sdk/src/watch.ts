/** Ends a request that is aborted or has gone silent, and leaves nothing behind. */
import { failureOf, streamOf } from './body.ts'

/** The life of one HTTP request. */
export interface Watch {
  /** Aborted with the outer signal, when the peer has been silent too long, and by `dispose()`. */
  readonly signal: AbortSignal
  /** Every byte that arrives through it is a sign of life. */
  readonly fetch: typeof globalThis.fetch
  /** Whether silence was what ended the request. */
  readonly isSilent: () => boolean
  /** Waits for the peer. Silence counts only here: the time that a caller takes is its own. */
  until<T>(work: PromiseLike<T>): Promise<T>
  /** Closes what is still open and lets go of the outer signal. */
  dispose(): void
}

/** Starts to watch; the caller disposes. */
export function watchRequest(outer: AbortSignal, idleTimeoutMs: number): Watch {
  const controller = new AbortController()
  const abort = (): void => controller.abort(outer.reason)
  if (outer.aborted) abort()
  else outer.addEventListener('abort', abort, { once: true })
  let isSilent = false
  let timer: NodeJS.Timeout | undefined
  const expire = (): void => {
    isSilent = true
    controller.abort()
  }
  return {
    signal: controller.signal,
    fetch: (input, init) => fetchAlive(input, init, () => timer?.refresh()),
    isSilent: () => isSilent,
    async until(work) {
      timer = setTimeout(expire, idleTimeoutMs)
      try {
        return await work
      } finally {
        clearTimeout(timer)
        timer = undefined
      }
    },
    dispose() {
      outer.removeEventListener('abort', abort)
      controller.abort()
    },
  }
}

/** Providers keep a busy stream open with comments and pings, which yield no parts: so bytes count. */
async function fetchAlive(
  input: Parameters<typeof globalThis.fetch>[0],
  init: RequestInit | undefined,
  touch: () => void,
): Promise<Response> {
  // Followed, a redirect would hand keys, headers and the conversation to whatever host it names.
  const response = await globalThis.fetch(input, { ...init, redirect: 'manual' })
  touch()
  return response.ok ? streamOf(response, touch) : failureOf(response, touch)
}
