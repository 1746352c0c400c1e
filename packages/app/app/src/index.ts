/** Boots a yml, and the seam of front ends that serve what it loads, reached through `ctx.app`. */
export { type App, boot, type BootOptions } from './boot.ts'
export { nameOf } from './check.ts'
export { errorText, stackOf } from './error-text.ts'
export * from './errors.ts'
export * from './front-end.ts'
export { isDebugging } from './log.ts'
export { sanitize } from './sanitize.ts'
