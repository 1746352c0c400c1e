/** The dsh command: boots a yml and lets the front end that it names serve. */
export { type App, boot, type BootOptions } from '@deepseek-ai/dsh-app'
export { main } from './command.ts'
