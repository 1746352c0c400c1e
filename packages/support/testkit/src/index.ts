/** What the tests of all packages share; never a runtime dependency. */
export * from './context.ts'
export * from './model-server.ts'
export * from './scripted-model.ts'
export * from './wait.ts'
