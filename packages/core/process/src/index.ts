/** Child-process care: clean environments, typed start errors, an end proven for the whole tree. */
export * from './environment.ts'
export * from './errors.ts'
export * from './process.ts'
export * from './tail.ts'
