/** Gemini CLI as a subagent. */
import { describeRecipe, key } from './helpers.ts'

describeRecipe({
  section: 'Gemini CLI',
  spec: '@google/gemini-cli@0.61.0',
  bin: 'node_modules/.bin',
  env: (url) => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key }),
  read: (file_path) => ({ name: 'read_file', input: { file_path } }),
  write: (file_path, content) => ({ name: 'write_file', input: { file_path, content } }),
  shell: (command) => ({ name: 'run_shell_command', input: { command } }),
  refused: /canceled by the user/,
})
